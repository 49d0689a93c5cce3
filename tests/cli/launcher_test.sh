#!/usr/bin/env bash
# The launcher, with cmake, ninja and ctest replaced by recorders: what it calls, when, and what it says when it fails.
set -uo pipefail

launcher=$1
export LC_ALL=C  # bash warns of a locale that is not there
unset INFEROMETER_CUDA INFEROMETER_PRESET CMAKE_BUILD_PARALLEL_LEVEL POSIXLY_CORRECT  # the caller may test another preset
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
failures=0

check() {  # check NAME EXPECTED ACTUAL
  if [ "$2" == "$3" ]; then echo "ok: $1"; else
    failures=$((failures + 1))
    printf 'FAILED: %s\n  expected: %s\n  actual:   %s\n' "$1" "$2" "$3"
  fi
}
contains() {  # contains NAME PART TEXT
  if [[ $3 == *"$2"* ]]; then echo "ok: $1"; else
    failures=$((failures + 1))
    printf 'FAILED: %s\n  wanted: %s\n  in:     %s\n' "$1" "$2" "$3"
  fi
}

# A project folder with a space in its path, and tools that write what they were asked to do.
project="$work/a project"
tools="$work/tools"
mkdir -p "$project" "$tools"
cp "$launcher" "$project/inferometer"
echo '{}' >"$project/CMakePresets.json"
touch -d '2001-01-01' "$project/CMakePresets.json"
cat >"$tools/cmake" <<'TOOL'
#!/usr/bin/env bash
echo "cmake $*" >>"$CALLS"
[ "${FAIL:-}" != cmake ] || { echo 'CMake Error: no such thing'; exit 1; }
sleep "${SLOW:-0}"
preset=$2
mkdir -p "build/$preset"
touch "build/$preset/build.ninja"
echo "${4#-D}" | sed 's/=/:BOOL=/' >"build/$preset/CMakeCache.txt"
TOOL
cat >"$tools/ninja" <<'TOOL'
#!/usr/bin/env bash
echo "ninja ${*:3}" >>"$CALLS"
[ "${FAIL:-}" != ninja ] || {
  for i in 1 2 3 4 5 6 7; do echo "[$i/9] Building CXX object $i/error.cpp.o"; for j in 1 2 3 4 5 6; do echo "note $j"; done; done
  echo 'a.cpp:1:1: error: expected something else'
  exit 1
}
[ -z "${STEPS:-}" ] || for i in $STEPS; do
  echo "[$i/9] Building CXX object $i.cpp.o"
  sleep 3
done
mkdir -p "$2/bin"
printf '#!/bin/sh\necho "ran from $(pwd) root=$INFEROMETER_ROOT args=$*"\nexit 7\n' >"$2/bin/inferometer"
chmod +x "$2/bin/inferometer"
TOOL
cat >"$tools/ctest" <<'TOOL'
#!/usr/bin/env bash
echo "ctest $*" >>"$CALLS"
[ "${FAIL:-}" != ctest ] || exit 8
TOOL
chmod +x "$tools"/*
export CALLS="$work/calls" PATH="$tools:$PATH"
run() { : >"$CALLS"; (cd "$work" && "$project/inferometer" "$@") 2>"$work/err"; }

output=$(INFEROMETER_CUDA=off run run 'my config.json' --quick)
status=$?
check 'the program runs in the caller'"'"'s folder, with its arguments' \
  "ran from $work root=$project args=run my config.json --quick" "$output"
check 'its exit code comes through' 7 "$status"
check 'first call configures and builds' \
  $'cmake --preset cpu --fresh -DINFEROMETER_TESTS=OFF\nninja inferometer_app' "$(cat "$CALLS")"

INFEROMETER_CUDA=off run list >/dev/null
check 'second call only asks ninja' 'ninja inferometer_app' "$(cat "$CALLS")"

CMAKE_BUILD_PARALLEL_LEVEL=1 INFEROMETER_CUDA=off run list >/dev/null
check 'CMake'"'"'s own variable says how many jobs a build may have' 'ninja inferometer_app -j 1' "$(cat "$CALLS")"

INFEROMETER_CUDA=off run test -R judge
check 'test builds all and passes ctest its arguments' \
  $'cmake --preset cpu --fresh -DINFEROMETER_TESTS=ON\nninja all\nctest --test-dir '"$project"$'/build/cpu --parallel '"$(nproc)"$' --output-on-failure -R judge' "$(cat "$CALLS")"

INFEROMETER_CUDA=off run list >/dev/null
check 'run keeps the tests in the build' 'ninja inferometer_app' "$(cat "$CALLS")"

contains 'test --help builds nothing' 'ctest arguments' "$(INFEROMETER_CUDA=off run test --help)"
check 'and calls nothing' '' "$(cat "$CALLS")"

rm -rf "$project/build"
SLOW=3 INFEROMETER_CUDA=off run list >/dev/null
check 'a slow configuration does not say that it builds: the build does, once' 0 "$(grep -c building "$work/err")"

# A long build says how far it is, while it goes on.
STEPS='1 2 3 4 5' INFEROMETER_CUDA=off run list >/dev/null
check 'where nobody watches, a long build says so' 'inferometer: building' "$(head -n 1 "$work/err")"
check 'and now and then how far it is' yes \
  "$([ "$(grep -c '^inferometer: \[[1-5]/9\] after [0-9]* s$' "$work/err")" -ge 2 ] && echo yes)"
rm -rf "$project/build"
STEPS='1 2' INFEROMETER_CUDA=off run list >/dev/null
check 'and where nothing is built yet, that it takes a while' 'inferometer: building; the first time takes some minutes' \
  "$(head -n 1 "$work/err")"
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
  shown=$(cd "$work" && STEPS='1 2' INFEROMETER_CUDA=off script -qec "'$project/inferometer' list" /dev/null </dev/null)
  contains 'on a terminal it shows what ninja is at' ' s [1/9] Building CXX object 1.cpp.o' "$shown"
  contains 'and what comes next' ' s [2/9] Building CXX object 2.cpp.o' "$shown"
fi

INFEROMETER_CUDA=maybe run list
check 'a wrong INFEROMETER_CUDA exits 2' 2 $?
contains 'and says what is allowed' "must be auto, on or off, got 'maybe'" "$(cat "$work/err")"

# A preset that is not there is refused before anything is made.
echo '{"buildPresets": [{"name": "cpu", "configurePreset": "cpu"}, {"name": "asan", "configurePreset": "asan"}]}' \
  >"$project/CMakePresets.json"
touch -d '2001-01-01' "$project/CMakePresets.json"
for preset in nope ../x -x; do
  INFEROMETER_PRESET=$preset run list
  check "INFEROMETER_PRESET=$preset exits 2" 2 $?
  contains 'and says what is allowed' "must be one of asan, cpu, got '$preset'" "$(cat "$work/err")"
  check 'and calls nothing' '' "$(cat "$CALLS")"
done
[ ! -e "$project/x" ] || check 'and makes no folder' none "$project/x"
INFEROMETER_PRESET=asan run list >/dev/null
contains 'a preset that is there is built' 'cmake --preset asan ' "$(cat "$CALLS")"

# A lock that cannot be written.
rm "$project/build/.lock"
mkdir "$project/build/.lock"
INFEROMETER_CUDA=off run list
check 'an unwritable lock exits 2' 2 $?
check 'and says so' "inferometer: cannot write $project/build/.lock: the build needs it" "$(cat "$work/err")"
rmdir "$project/build/.lock"

FAIL=ninja INFEROMETER_CUDA=off run list
check 'a failed build exits 1' 1 $?
contains 'shows the error' 'expected something else' "$(cat "$work/err")"
check 'but no step of a file named so' 0 "$(grep -c 'error\.cpp' "$work/err")"
contains 'and names the log' 'build.log' "$(cat "$work/err")"

rm -rf "$project/build"
FAIL=cmake INFEROMETER_CUDA=off run list
check 'a failed configuration exits 1' 1 $?
contains 'and shows its error' 'no such thing' "$(cat "$work/err")"

# What failed is said once more at the end; the exit status is that of ctest.
rm -rf "$project/build"
INFEROMETER_CUDA=off run test
mkdir -p "$project/build/cpu/Testing/Temporary"
printf 'a_test.cpp:7: FAILED:\n  CHECK( a == b )\nwith expansion:\n  1 == 2\n\npassed well\nFAILED: of a script\n  expected: 3\n' \
  >"$project/build/cpu/Testing/Temporary/LastTest.log"
FAIL=ctest INFEROMETER_CUDA=off run test
check 'failed tests exit as ctest does' 8 $?
check 'and are said at the end' $'a_test.cpp:7: FAILED:\n  CHECK( a == b )\nwith expansion:\n  1 == 2\n\n--\nFAILED: of a script\n  expected: 3' \
  "$(grep -v '^inferometer:' "$work/err")"
INFEROMETER_CUDA=off run test
check 'passed tests say nothing at the end' '' "$(cat "$work/err")"

# Two at once: one configures, the other waits and finds it done.
rm -rf "$project/build"
: >"$CALLS"
for i in 1 2; do
  (cd "$work" && SLOW=0.5 INFEROMETER_CUDA=off "$project/inferometer" list >"$work/out$i" 2>"$work/err$i") &
done
wait
check 'two at once configure once' 1 "$(grep -c '^cmake' "$CALLS")"
contains 'and both run (1)' 'args=list' "$(cat "$work/out1")"
contains 'and both run (2)' 'args=list' "$(cat "$work/out2")"

# A link to the launcher finds the project.
ln -s "$project/inferometer" "$work/link"
contains 'a symbolic link works' "root=$project" "$(cd / && INFEROMETER_CUDA=off "$work/link" list 2>/dev/null)"

# Packages missing and no way to become root: the one command to type, exit 2. Tools are cut down to what the script
# itself needs, and g++ is not among them.
bare="$work/bare"
mkdir -p "$bare"
for tool in bash env dirname readlink mkdir flock id tr cat grep sleep apt-get nvcc; do
  path=$(PATH=/usr/bin:/bin command -v "$tool") && ln -s "$path" "$bare/$tool"
done
printf '#!/bin/sh\necho 1000\n' >"$bare/id.user"
rm -f "$bare/id" "$bare/apt-get" && mv "$bare/id.user" "$bare/id" && chmod +x "$bare/id"
printf '#!/bin/sh\nexit 1\n' >"$bare/apt-get" && chmod +x "$bare/apt-get"
message=$(PATH="$bare" INFEROMETER_CUDA=off "$project/inferometer" list 2>&1 </dev/null)
check 'without root and without g++ it exits 2' 2 $?
contains 'and prints the command to type' 'sudo sh -c' "$message"
contains 'which names the package' 'g++' "$message"
rm -f "$bare/apt-get"
message=$(PATH="$bare" INFEROMETER_CUDA=off "$project/inferometer" list 2>&1 </dev/null)
check 'without apt-get it exits 2' 2 $?
contains 'and names the packages' 'g++' "$message"

echo
echo "$failures failures"
[ "$failures" = 0 ]
