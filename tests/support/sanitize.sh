#!/usr/bin/env bash
# GPU tests under compute-sanitizer, each case in a process of its own with a limit of time, several beside one another: a case that takes
# for ever costs itself alone, and the table says which cases have been seen clean and which have not.
#
#   tests/support/sanitize.sh GPU_TESTS [--tools memcheck,racecheck] [--jobs N] [--limit SECONDS] [--logs DIR] [TEST SPEC]
#
# Without a spec, all cases but those tagged [large], whose sizes take a tool far beyond any limit; smaller cases run the same kernels.
#
# Lines: tool, clean | errors | failed (the test itself) | time limit | stopped | not run, seconds, case; beneath, the first three distinct
# errors. --logs keeps all that was said, and the table; without it they stay only when the script is stopped. Exit code 0: all clean, 1: not,
# 2: wrong use.
set -uo pipefail

usage() { printf 'sanitize: %s\n' "$1" >&2; sed -n '/^#   tests/s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

tools=memcheck,racecheck jobs=4 limit=300 logs='' program='' spec='~[.]~[large]'
while [ $# -gt 0 ]; do
  case $1 in
    --tools | --jobs | --limit | --logs)
      [ $# -ge 2 ] || usage "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    -*) usage "unknown option $1" ;;
    *)
      if [ -z "$program" ]; then program=$1; else spec=$1; fi
      shift ;;
  esac
done
[ -n "$program" ] || usage 'the test program is missing'
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage "--jobs must be a count from 1 on, got '$jobs'"
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage "--limit must be seconds from 1 on, got '$limit'"
for tool in ${tools//,/ }; do
  case $tool in memcheck | racecheck | initcheck | synccheck) ;; *) usage "--tools: unknown tool '$tool', known are memcheck, racecheck, initcheck, synccheck" ;; esac
done
[ -x "$program" ] || usage "$program is no program"
command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v compute-sanitizer >/dev/null || usage 'compute-sanitizer is not there: it comes with the CUDA Toolkit'
if [ -z "$logs" ]; then
  logs=$(mktemp -d)
  trap 'rm -rf -- "$logs"' EXIT
else
  mkdir -p -- "$logs" || exit 2
fi

# The first three distinct errors of a log, a line each: kind, functions without their arguments, files and lines.
first_errors() {
  awk '
    function keep() {
      while (gsub(/<[^<>]*>|\([^()]*\)/, "", error)) {}
      gsub(/\+0x[0-9a-f]+| \[[0-9]+ hazards?\]|void |inferometer::(::)?/, "", error)
      if (error != "" && !seen[error]++ && ++kept <= 3) printf "           %.240s\n", error
      error = ""
    }
    /^=+ [^ ]/ { keep(); if (!/COMPUTE-SANITIZER|SUMMARY/) error = substr($0, 11) }
    /^=+ +(at|and) / && error != "" { sub(/^=+ +/, " "); error = error $0 }
    END { keep() }' "$1"
}

# One case under one tool: its lines to standard output and to the table, the sanitizer's words and the test's to a file.
one_case() {
  local tool=$1 number=$2 name=$3 log code result start stopped='' run='' kernels=()
  log=$logs/$tool-$number.log
  start=$(date +%s)
  # `timeout` has a process group of its own, which a signal to ours does not reach.
  trap 'stopped=1; kill "$run" 2>/dev/null' TERM
  # Races within cuBLAS are not ours to find, and looking for them takes longer than for our own. Mangled names hold the namespace.
  [ "$tool" != racecheck ] || kernels=(--kernel-name kns=inferometer)
  # In a test spec a comma, a bracket, a star and a backslash have a meaning. The compiler counts the barriers in shared memory too low
  # where a loop or several threads set them up; a block of ours has 128 at most.
  timeout -k 5 "$limit" compute-sanitizer --tool "$tool" --error-exitcode 99 --num-cuda-barriers 128 "${kernels[@]}" \
    "$program" "$(sed 's/[][,*\\"]/\\&/g' <<<"$name")" >"$log" 2>&1 </dev/null &
  run=$!
  wait "$run"
  code=$?
  [ -z "$stopped" ] || wait "$run"
  case ${stopped:+stopped }$code in
    stopped*) result=stopped ;;
    0) if grep -qE '^=+ (ERROR|RACECHECK) SUMMARY: 0 ' "$log"; then result=clean; else result='not run'; fi ;;
    99) result=errors ;;
    124 | 137) result='time limit' ;;
    77) result='not run' ;;
    *) if grep -qE 'SUMMARY: [1-9]' "$log"; then result=errors; else result=failed; fi ;;
  esac
  # All lines in one piece: other cases write too.
  tee -a -- "$logs/table" <<<"$(printf '%-10s %-10s %4d s  %s\n' "$tool" "$result" $(($(date +%s) - start)) "$name"; first_errors "$log")"
}

# Catch2 3 lists names under --list-tests, version 2 under an option of its own, whose exit code is the count.
cases=$("$program" "$spec" --list-tests --verbosity quiet 2>/dev/null)
[ -n "$cases" ] && ! grep -q '^All available\|^Matching' <<<"$cases" || cases=$("$program" "$spec" --list-test-names-only 2>/dev/null)
[ -n "$cases" ] || usage "no test case of $program matches '$spec'"

export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}  # the judge of one case must not spin where those of others compute
stopped=''
stop() {
  stopped=1
  trap - EXIT
  kill $(jobs -rp) 2>/dev/null
}
trap stop TERM INT HUP
number=0
: >"$logs/table"
while IFS= read -r name; do
  number=$((number + 1))
  for tool in ${tools//,/ }; do
    while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
    [ -z "$stopped" ] || break 2
    one_case "$tool" "$number" "$name" &
  done
done <<<"$cases"
while [ -n "$(jobs -rp)" ]; do wait; done  # a signal ends a wait
clean=$(grep -c '^[a-z][a-z]* *clean ' -- "$logs/table")
total=$(($(wc -l <<<"$cases") * $(wc -w <<<"${tools//,/ }")))
printf '%d of %d clean\n' "$clean" "$total"
[ -z "$stopped" ] || printf 'sanitize: stopped, logs are in %s\n' "$logs"
[ "$clean" = "$total" ]
