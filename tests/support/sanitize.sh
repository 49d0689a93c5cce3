#!/usr/bin/env bash
# GPU tests under compute-sanitizer, each case in a process of its own with a limit of time, several beside one another: a case that takes
# for ever costs itself alone, and the table says which cases have been seen clean and which have not.
#
#   tests/support/sanitize.sh GPU_TESTS [--tools memcheck,racecheck] [--jobs N] [--limit SECONDS] [--logs DIR] [TEST SPEC]
#
# Lines: tool, clean | errors | failed (the test itself) | time limit | not run, seconds, case. Exit code 0: all clean, 1: not, 2: wrong use.
set -uo pipefail

usage() { printf 'sanitize: %s\n' "$1" >&2; sed -n '/^#   tests/s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

tools=memcheck,racecheck jobs=4 limit=300 logs='' program='' spec='~[.]'
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

# One case under one tool: a line to standard output, the sanitizer's words and the test's to a file.
one_case() {
  local program=$1 limit=$2 logs=$3 tool=$4 number=$5 name=$6 log code result start
  log=$logs/$tool-$number.log
  start=$(date +%s)
  # In a test spec a comma, a bracket, a star and a backslash have a meaning.
  timeout -k 5 "$limit" compute-sanitizer --tool "$tool" --error-exitcode 99 "$program" "$(sed 's/[][,*\\"]/\\&/g' <<<"$name")" >"$log" 2>&1 </dev/null
  code=$?
  case $code in
    0) if grep -qE '^=+ (ERROR|RACECHECK) SUMMARY: 0 ' "$log"; then result=clean; else result='not run'; fi ;;
    99) result=errors ;;
    124 | 137) result='time limit' ;;
    77) result='not run' ;;
    *) if grep -qE 'SUMMARY: [1-9]' "$log"; then result=errors; else result=failed; fi ;;
  esac
  printf '%-10s %-10s %4d s  %s\n' "$tool" "$result" $(($(date +%s) - start)) "$name"
}
export -f one_case

# Catch2 3 lists names under --list-tests, version 2 under an option of its own, whose exit code is the count.
cases=$("$program" "$spec" --list-tests --verbosity quiet 2>/dev/null)
[ -n "$cases" ] && ! grep -q '^All available\|^Matching' <<<"$cases" || cases=$("$program" "$spec" --list-test-names-only 2>/dev/null)
[ -n "$cases" ] || usage "no test case of $program matches '$spec'"

number=0
while IFS= read -r name; do
  number=$((number + 1))
  for tool in ${tools//,/ }; do printf '%s\0' "$program" "$limit" "$logs" "$tool" "$number" "$name"; done
done <<<"$cases" | xargs -0 -n 6 -P "$jobs" bash -c 'one_case "$@"' one_case | tee -- "$logs/table"
clean=$(grep -c '^[a-z]* *clean ' -- "$logs/table")
total=$(($(wc -l <<<"$cases") * $(wc -w <<<"${tools//,/ }")))
printf '%d of %d clean\n' "$clean" "$total"
[ "$clean" = "$total" ]
