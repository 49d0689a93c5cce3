# For the tests of the command line, which source it: a folder to work in, and `expect`. $program is what is tested;
# `command` may hold words that come before the arguments of every call.
export NO_COLOR=1
command=()
failures=0
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
cd -- "$work" || exit 1

fail() { failures=$((failures + 1)); printf 'FAILED: %s\n  %s\n' "$1" "$2"; }
# Rows of a results file that passed their check and were timed: on a busy machine a time may be too uncertain to be ok.
measured_rows() { grep -cE '"status": *"(ok|suspect)"' -- "$1"; }
# expect EXIT_CODE WANTED_TEXT ARGUMENTS...: both streams together must hold the text (a regular expression).
expect() {
  local code=$1 text=$2 output actual
  shift 2
  output=$(timeout 120 "$program" ${command[@]+"${command[@]}"} "$@" 2>&1 </dev/null)
  actual=$?
  # A run of rows that are right, of which some time is too uncertain, is a matter of timing.
  if [ "$code $actual ${1-}" = '0 1 run' ] && grep -q 'suspect' <<<"$output" &&
    ! grep -qE '(incorrect|crashed|timed_out|out_of_memory|error): ' <<<"$output"; then
    actual=0
  fi
  if [ "$actual" != "$code" ]; then fail "$*" "exit code $actual instead of $code; it said: $output"; return; fi
  grep -qE -- "$text" <<<"$output" || { fail "$*" "wanted /$text/ in: $output"; return; }
  echo "ok ($code): $*"
}
