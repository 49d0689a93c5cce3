# For the tests of the command line, which source it: a folder to work in, and `expect`. $program is what is tested;
# `command` may hold words that come before the arguments of every call.
export NO_COLOR=1 LC_ALL=C
# For `run`: a sample a row. No time is then too uncertain to be ok, however busy the machine is.
one_sample=(--set measure.min_samples=1 --set measure.max_samples=1)
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
  output=$(timeout 600 "$program" ${command[@]+"${command[@]}"} "$@" 2>&1 </dev/null)
  actual=$?
  # Rows that are right, of which some time is too uncertain, are a matter of timing.
  if [ "$code $actual" = '0 1' ] && grep -q 'suspect' <<<"$output" &&
    ! grep -qE '(incorrect|crashed|timed_out|out_of_memory|error): ' <<<"$output"; then
    actual=0
  fi
  if [ "$actual" != "$code" ]; then fail "$*" "exit code $actual instead of $code; it said: $output"; return; fi
  if grep -qF 'json.exception' <<<"$output"; then fail "$*" "a sentence of the JSON library: $output"; return; fi
  grep -qE -- "$text" <<<"$output" || { fail "$*" "wanted /$text/ in: $output"; return; }
  echo "ok ($code): $*"
}
