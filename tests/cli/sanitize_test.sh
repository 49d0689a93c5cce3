#!/usr/bin/env bash
# tests/support/sanitize.sh with stand-ins for the test program and for compute-sanitizer. Usage: sanitize_test.sh PROJECT_FOLDER
set -uo pipefail

program=$1/tests/support/sanitize.sh
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

mkdir bin
# Lists its cases as Catch2 3 does, with OLD set as version 2; runs the one whose name, escaped, it is given.
cat >bin/gpu_tests <<'SCRIPT'
#!/usr/bin/env bash
names=('right' 'two, of [three]' 'a race' 'wrong')
[ -z "${ONLY:-}" ] || names=("$ONLY")
[ "$1" = none ] && exit
case "$*" in
  *--list-tests*)
    [ -z "${OLD:-}" ] || echo 'All available test cases:'
    printf '%s\n' "${names[@]}" ;;
  *--list-test-names-only*) printf '%s\n' "${names[@]}"; exit "${#names[@]}" ;;
  right | 'two\, of \[three\]' | 'a race') ;;
  wrong) exit 1 ;;
  endless) sleep 60 ;;
  *) echo "no such case: $*"; exit 3 ;;
esac
SCRIPT
cat >bin/compute-sanitizer <<'SCRIPT'
#!/usr/bin/env bash
tool=$2
shift 4
"$@" || exit
[ "${SILENT:-}" ] && exit
if [ "$tool ${*: -1}" = 'racecheck a race' ]; then echo '========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)'; exit 99; fi
if [ "$tool" = racecheck ]; then echo '========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)'; else echo '========= ERROR SUMMARY: 0 errors'; fi
SCRIPT
chmod +x bin/*
export PATH=$PWD/bin:$PATH

expect 1 '^5 of 8 clean$' "$PWD/bin/gpu_tests" --logs logs
[ "$(find logs -name 'racecheck-*.log' | wc -l)" = 4 ] || fail 'logs' 'a log is missing'
expect 1 '^memcheck +clean +[0-9]+ s  a race$' "$PWD/bin/gpu_tests"
expect 1 '^racecheck +errors +[0-9]+ s  a race$' "$PWD/bin/gpu_tests"
expect 1 '^racecheck +clean +[0-9]+ s  two, of \[three\]$' "$PWD/bin/gpu_tests"
expect 1 '^memcheck +failed +[0-9]+ s  wrong$' "$PWD/bin/gpu_tests" --jobs 1
ONLY=endless expect 1 '^memcheck +time limit +[0-9]+ s  endless$' "$PWD/bin/gpu_tests" --limit 1 --tools memcheck
ONLY=right expect 0 '^2 of 2 clean$' "$PWD/bin/gpu_tests"
# A sanitizer that says nothing has checked nothing.
SILENT=1 expect 1 '^0 of 4 clean$' "$PWD/bin/gpu_tests" --tools memcheck
OLD=1 expect 1 '^2 of 4 clean$' "$PWD/bin/gpu_tests" --tools racecheck --jobs 8
expect 2 'the test program is missing'
expect 2 'absent is no program' absent
expect 2 "unknown tool 'memchek'" "$PWD/bin/gpu_tests" --tools memchek
expect 2 '--limit must be seconds' "$PWD/bin/gpu_tests" --limit 0
expect 2 "matches 'none'" "$PWD/bin/gpu_tests" none

[ "$failures" = 0 ] && echo 'all as expected'
exit "$failures"
