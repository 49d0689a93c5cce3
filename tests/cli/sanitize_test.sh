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
  right | 'two\, of \[three\]' | 'a race') [ "${INFEROMETER_SANITIZER:-}" = "$TOOL" ] ;;
  wrong) exit 1 ;;
  nameless) echo "No test cases matched 'nameless'" ;;
  endless) touch running; sleep 60 ;;
  *) echo "no such case: $*"; exit 3 ;;
esac
SCRIPT
cat >bin/compute-sanitizer <<'SCRIPT'
#!/usr/bin/env bash
tool=$2
export TOOL=$tool  # for the test program, which must have been told the same
printf '%s\n' "$*" >>"${CALLS:-/dev/null}"
while [[ $1 == --* ]]; do shift 2; done
[ "${SILENT:-}" ] || echo '========= COMPUTE-SANITIZER'
race() {
  printf '========= Error: Race reported between Write access at void inferometer::(anonymous namespace)::copy_kernel<__half, inferometer::Shape<(int)64>>(inferometer::Params)+0x%s in copy.cuh:%s\n' "$1" "$2"
  printf '=========     and Read access at void inferometer::Rows<(int)%s>::read(const float (&)[2])+0x70 in read.cuh:7 [%s hazards]\n=========\n' "$2" "$3"
}
if [ "$tool ${*: -1}" = 'racecheck a race' ]; then race 1f0 60 4; race 2f0 60 512; race 1f0 61 4; race 1f0 62 4; race 1f0 63 4; fi
if [ "${*: -1}" = endless ]; then
  echo '========= Invalid __global__ read of size 4 bytes'
  echo '=========     at inferometer::wait_kernel(int *)+0x10 in wait.cu:3'
  echo '=========     by thread (0,0,0) in block (0,0,0)'
fi
"$@" || exit
[ "${SILENT:-}" ] && exit
if [ "$tool ${*: -1}" = 'racecheck a race' ]; then echo '========= RACECHECK SUMMARY: 5 hazards displayed (5 errors, 0 warnings)'; exit 99; fi
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

# racecheck looks at the kernels of this project alone.
ONLY=right CALLS=calls expect 0 '^2 of 2 clean$' "$PWD/bin/gpu_tests"
grep -q '^--tool racecheck .*--kernel-name kns=inferometer ' calls && ! grep '^--tool memcheck ' calls | grep -q -e --kernel-name ||
  fail 'kernels' "not racecheck alone has the option: $(cat calls)"

ONLY=right CALLS=calls expect 0 '^2 of 2 clean, without kernels named softmax$' "$PWD/bin/gpu_tests" --exclude softmax --logs without
[ "$(grep -c -e '--kernel-name-exclude kns=softmax ' calls)" = 2 ] || fail 'kernels' "not both tools leave it out: $(cat calls)"

# Beneath a case stand the first errors of its log, each once.
expect 1 '^ +Error: Race reported between Write access at copy_kernel in copy\.cuh:60 and Read access at Rows::read in read\.cuh:7$' "$PWD/bin/gpu_tests"
[ "$(grep -A 4 'errors .* a race' logs/table | grep -c '^ .*Race reported')" = 3 ] || fail 'errors' "not three of four beneath the case: $(cat logs/table)"
ONLY=endless expect 1 '^ +Invalid __global__ read of size 4 bytes at wait_kernel in wait\.cu:3$' "$PWD/bin/gpu_tests" --limit 1 --tools memcheck

# stop NAME OPTIONS...: ends the script while its second case runs. Its words are then in the file NAME.
stop() {
  local name=$1 code start
  shift
  rm -f running
  ONLY=$'right\nendless' "$program" "$PWD/bin/gpu_tests" --tools memcheck --jobs 1 "$@" >"$name" 2>&1 </dev/null &
  for _ in {1..300}; do if [ -e running ]; then break; fi; sleep 0.1; done
  start=$SECONDS
  kill $!
  wait $!
  code=$?
  [ "$code" = 1 ] && [ $((SECONDS - start)) -lt 20 ] || fail "$name" "exit code $code after $((SECONDS - start)) s"
  grep -qE '^memcheck +stopped +[0-9]+ s  endless$' "$name" || fail "$name" "the case under way is not there: $(cat "$name")"
}
stop kept --logs kept_logs
grep -qE '^memcheck +clean .* right$' kept_logs/table || fail 'kept' 'the table lacks what was done before'
grep -q 'wait_kernel' kept_logs/memcheck-2.log || fail 'kept' 'the log of the case under way is gone'
stop told
told=$(sed -n 's/^sanitize: stopped, logs are in //p' told)
grep -qE '^memcheck +clean .* right$' "$told/table" || fail 'told' "no table where it says: $(cat told)"
[ -z "$told" ] || rm -rf -- "$told"

# --done: what another table shows clean is not run again, and counts.
hash=$(sha256sum bin/gpu_tests | cut -d ' ' -f 1)
[ "$(head -1 logs/table)" = "program    $hash" ] || fail 'hash' "the table does not begin with the program: $(cat logs/table)"
expect 1 '^5 of 8 clean, 5 of them earlier$' "$PWD/bin/gpu_tests" --logs again --done logs/table
[ "$(grep -c ' s  ' again/table)" = 3 ] || fail 'again' "not the three that were not clean: $(cat again/table)"
ONLY=right CALLS=none expect 0 '^2 of 2 clean, 2 of them earlier$' "$PWD/bin/gpu_tests" --done logs/table
[ ! -e none ] || fail 'none' "the sanitizer was called: $(cat none)"

# A table of a run that left kernels out says nothing of them.
expect 2 'without/table is of a run with --exclude softmax' "$PWD/bin/gpu_tests" --done without/table
expect 2 'without/table is of a run with --exclude softmax' "$PWD/bin/gpu_tests" --done without/table --exclude append
ONLY=right expect 0 '^2 of 2 clean, 2 of them earlier, without kernels named softmax$' "$PWD/bin/gpu_tests" --done without/table --exclude softmax
ONLY=right expect 0 '^2 of 2 clean, 2 of them earlier, without' "$PWD/bin/gpu_tests" --done logs/table --exclude softmax

# A second run into one folder would take the first one's table; half a line may hold the name of another case.
expect 2 'logs holds the table of another run' "$PWD/bin/gpu_tests" --logs logs --done logs/table
grep -q 'clean .* right$' logs/table || fail 'table' "that of the earlier run is gone: $(cat logs/table)"
printf 'program    %s\nmemcheck   clean         1 s  wrong\nmemcheck   clean         1 s  right' "$hash" >torn
ONLY=right expect 0 '^1 of 1 clean, 0 of them earlier$' "$PWD/bin/gpu_tests" --tools memcheck --done torn

# The last table that saw a case end decides; one that saw it stopped says nothing against it.
printf 'program    %s\nmemcheck   errors       1 s  right\nracecheck  stopped      1 s  right\n' "$hash" >later
ONLY=right expect 0 '^2 of 2 clean, 1 of them earlier$' "$PWD/bin/gpu_tests" --done logs/table --done later
ONLY=right expect 0 '^2 of 2 clean, 2 of them earlier$' "$PWD/bin/gpu_tests" --done later --done logs/table

# What takes longest comes first: after 100 s, what no table knows.
printf 'program    %s\nmemcheck   failed       7 s  wrong\nmemcheck   errors     120 s  two, of [three]\nmemcheck   stopped     30 s  a race\n' "$hash" >durations
expect 1 '^3 of 4 clean, 0 of them earlier$' "$PWD/bin/gpu_tests" --tools memcheck --jobs 1 --logs ordered --done durations
order=$(sed -n 's/^memcheck .* s  //p' ordered/table | tr '\n' ';')
[ "$order" = 'a race;two, of [three];right;wrong;' ] || fail 'order' "$order"

# Tables of another program count only where they are said to be of the same kernels.
sed "1s/$hash/0123/" logs/table >others
sed 1d logs/table >nameless
expect 2 "others is of another program, 0123; this one is $hash" "$PWD/bin/gpu_tests" --done logs/table --done others
expect 2 'nameless is of a program that it does not name' "$PWD/bin/gpu_tests" --done nameless
ONLY=right expect 0 '^2 of 2 clean, 2 of them earlier, in 1 of 2 tables by another program said to have the same kernels$' "$PWD/bin/gpu_tests" \
  --done logs/table --done others --same-kernels
expect 2 '--same-kernels says something of --done TABLE' "$PWD/bin/gpu_tests" --same-kernels
expect 2 'absent cannot be read' "$PWD/bin/gpu_tests" --done absent

# A sanitizer that says nothing has checked nothing.
SILENT=1 expect 1 '^0 of 4 clean$' "$PWD/bin/gpu_tests" --tools memcheck
ONLY=nameless expect 1 '^memcheck +not run +[0-9]+ s  nameless$' "$PWD/bin/gpu_tests" --tools memcheck
OLD=1 expect 1 '^2 of 4 clean$' "$PWD/bin/gpu_tests" --tools racecheck --jobs 8
expect 2 'the test program is missing'
expect 2 'absent is no program' absent
expect 2 "unknown tool 'memchek'" "$PWD/bin/gpu_tests" --tools memchek
for tools in , memcheck, memcheck,,racecheck; do expect 2 "names with commas between, got '$tools'" "$PWD/bin/gpu_tests" --tools "$tools"; done
expect 2 '--tools names memcheck twice' "$PWD/bin/gpu_tests" --tools memcheck,memcheck
expect 2 '--tools names memcheck twice' "$PWD/bin/gpu_tests" --tools memcheck,racecheck,memcheck
expect 2 'bin cannot be read' "$PWD/bin/gpu_tests" --done bin
expect 2 '--limit must be seconds' "$PWD/bin/gpu_tests" --limit 0
expect 2 "matches 'none'" "$PWD/bin/gpu_tests" none

[ "$failures" = 0 ] && echo 'all as expected'
exit "$failures"
