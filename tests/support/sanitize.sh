#!/usr/bin/env bash
# GPU tests under compute-sanitizer, each case in a process of its own with a limit of time, several beside one another: a case that takes
# for ever costs itself alone, and the table says which cases have been seen clean and which have not.
#
#   tests/support/sanitize.sh GPU_TESTS [--tools memcheck,racecheck] [--jobs N] [--limit SECONDS] [--logs DIR] [--exclude KERNEL] [--done TABLE]... [--same-kernels] [TEST SPEC]
#
# Without a spec, all cases but those tagged [large], whose sizes take a tool far beyond any limit; smaller cases run the same kernels, and of
# problems that run the same kernel in the same way the cases take a few (tests/support/sanitizer.hpp).
#
# The first line says which program it was, by its SHA-256. Then: tool, clean | errors | failed (the test itself) | time limit | stopped |
# not run, seconds, case; beneath, the first three distinct errors. --logs keeps all that was said, and the table, in a folder that has none
# yet; without it they stay only when the script is stopped. Exit code 0: all clean, 1: not, 2: wrong use.
#
# --exclude leaves kernels out whose mangled names hold KERNEL, for the tool itself can fail in one. The table's second line says so.
#
# --done goes on where earlier runs ended: what one of their tables shows clean, and no later one to have errors, is not run again, and what
# took long there starts first. Tables of runs that left out kernels which this one runs are refused, and tables of another program.
# --same-kernels takes the latter: the caller's word that the cases of the same name and the kernels they run are the same, to be given only
# where the device code has been compared; the last line repeats it.
set -uo pipefail

usage() { printf 'sanitize: %s\n' "$1" >&2; sed -n '/^#   tests/s/^# *//p' "${BASH_SOURCE[0]}" >&2; exit 2; }

tools=memcheck,racecheck jobs=4 limit=300 logs='' program='' spec='~[.]~[large]' tables=() same_kernels='' exclude=''
while [ $# -gt 0 ]; do
  case $1 in
    --tools | --jobs | --limit | --logs | --exclude)
      [ $# -ge 2 ] || usage "$1 needs a value"
      printf -v "${1#--}" %s "$2"
      shift 2 ;;
    --done)
      [ $# -ge 2 ] || usage "$1 needs a value"
      tables+=("$2")
      shift 2 ;;
    --same-kernels) same_kernels=1; shift ;;
    -*) usage "unknown option $1" ;;
    *)
      if [ -z "$program" ]; then program=$1; else spec=$1; fi
      shift ;;
  esac
done
[ -n "$program" ] || usage 'the test program is missing'
[[ $jobs =~ ^[1-9][0-9]*$ ]] || usage "--jobs must be a count from 1 on, got '$jobs'"
[[ $limit =~ ^[1-9][0-9]*$ ]] || usage "--limit must be seconds from 1 on, got '$limit'"
[[ $tools =~ ^[a-z]+(,[a-z]+)*$ ]] || usage "--tools must be names with commas between, got '$tools'"
for tool in ${tools//,/ }; do
  [[ ,$tools, != *,$tool,*,$tool,* && ,$tools, != *,$tool,$tool,* ]] || usage "--tools names $tool twice"
  case $tool in memcheck | racecheck | initcheck | synccheck) ;; *) usage "--tools: unknown tool '$tool', known are memcheck, racecheck, initcheck, synccheck" ;; esac
done
[ -z "$same_kernels" ] || [ ${#tables[@]} -gt 0 ] || usage '--same-kernels says something of --done TABLE, and there is none'
[ -x "$program" ] || usage "$program is no program"
command -v compute-sanitizer >/dev/null || PATH=$PATH:/usr/local/cuda/bin
command -v compute-sanitizer >/dev/null || usage 'compute-sanitizer is not there: it comes with the CUDA Toolkit'
hash=$(sha256sum <"$program") || exit 2
hash=${hash%% *}
others=0  # tables that are not of this program
for table in "${tables[@]}"; do
  [ -f "$table" ] && [ -r "$table" ] || usage "--done: $table cannot be read"
  of=$(sed -n '1s/^program  *//p' "$table")
  without=$(sed -n '2s/^without  *//p' "$table")
  [ -z "$without" ] || [ "$without" = "$exclude" ] || usage "--done: $table is of a run with --exclude $without, this one must leave out the same"
  [ "$of" != "$hash" ] || continue
  of=${of:+another program, $of}
  [ -n "$same_kernels" ] || usage "--done: $table is of ${of:-a program that it does not name}; this one is $hash"
  others=$((others + 1))
done
if [ -z "$logs" ]; then
  logs=$(mktemp -d)
  trap 'rm -rf -- "$logs"' EXIT
else
  mkdir -p -- "$logs" || exit 2
  [ ! -e "$logs/table" ] || usage "--logs: $logs holds the table of another run; give another folder, and --done $logs/table to go on where that one ended"
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
  [ -z "$exclude" ] || kernels+=(--kernel-name-exclude "kns=$exclude")
  # In a test spec a comma, a bracket, a star and a backslash have a meaning. The compiler counts the barriers in shared memory too low
  # where a loop or several threads set them up; a block of ours has 128 at most.
  # Tests leave out repetitions, and what this tool fails in: tests/support/sanitizer.hpp.
  INFEROMETER_SANITIZER=$tool timeout -k 5 "$limit" compute-sanitizer --tool "$tool" --error-exitcode 99 --num-cuda-barriers 128 "${kernels[@]}" \
    "$program" "$(sed 's/[][,*\\"]/\\&/g' <<<"$name")" >"$log" 2>&1 </dev/null &
  run=$!
  wait "$run"
  code=$?
  [ -z "$stopped" ] || wait "$run"
  case ${stopped:+stopped }$code in
    stopped*) result=stopped ;;
    # Catch2 2 ends well too where no case has the name that it was given.
    0) if grep -qE '^=+ (ERROR|RACECHECK) SUMMARY: 0 ' "$log" && ! grep -q '^No test cases matched' "$log"; then result=clean; else result='not run'; fi ;;
    99) result=errors ;;
    124 | 137) result='time limit' ;;
    77) result='not run' ;;
    *) if grep -qE 'SUMMARY: [1-9]' "$log"; then result=errors; else result=failed; fi ;;
  esac
  # All lines in one piece: other cases write too.
  tee -a -- "$logs/table" <<<"$(printf '%-10s %-10s %4d s  %s\n' "$tool" "$result" $(($(date +%s) - start)) "$name"; first_errors "$log")"
}

# Of all tables. What a disk that was full left of a last line may be the name of another case.
whole_lines() {
  local table line
  for table in "${tables[@]}"; do
    while IFS= read -r line; do printf '%s\n' "$line"; done <"$table"
  done
}

# Reads lines of tool, number and case, and writes those that --done leaves, what takes longest first. What has not been seen to end may take
# 100 s more, the time that a case is to stay within.
still_to_run() {
  awk -F '\t' '
    listed { key = $1 FS $3; if (!(key in clean)) print (key in longest ? longest[key] : 100) FS $0; next }
    /^[a-z]+ +(clean|errors|failed|time limit|stopped|not run) +[0-9]+ s  / {
      match($0, / [0-9]+ s  /)
      key = substr($0, 1, index($0, " ") - 1) FS substr($0, RSTART + RLENGTH)
      seconds = substr($0, RSTART + 1) + (/^[a-z]+ +(time limit|stopped)/ ? 100 : 0)
      if (seconds > longest[key]) longest[key] = seconds
      if (/^[a-z]+ +clean/) clean[key]
      if (/^[a-z]+ +(errors|failed)/) delete clean[key]
    }' <(whole_lines) listed=1 - | sort -s -t $'\t' -k 1,1nr | cut -f 2-
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
tee -- "$logs/table" <<<"program    $hash${exclude:+$'\n'without    $exclude}"
plan=$(awk -v tools="$tools" '{ n = split(tools, tool, ","); for (i = 1; i <= n; i++) print tool[i] "\t" NR "\t" $0 }' <<<"$cases" | still_to_run)
while IFS=$'\t' read -r tool number name; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  [ -z "$stopped" ] || break
  one_case "$tool" "$number" "$name" &
done < <(printf %s "${plan:+$plan$'\n'}")
while [ -n "$(jobs -rp)" ]; do wait; done  # a signal ends a wait
total=$(($(wc -l <<<"$cases") * $(wc -w <<<"${tools//,/ }")))
earlier=$((total - $(grep -c . <<<"$plan")))
clean=$((earlier + $(grep -c '^[a-z][a-z]* *clean ' -- "$logs/table")))
said=''
[ -z "$same_kernels" ] || said=", in $others of ${#tables[@]} tables by another program said to have the same kernels"
[ ${#tables[@]} = 0 ] || said=", $earlier of them earlier$said"
[ -z "$exclude" ] || said+=", without kernels named $exclude"
printf '%d of %d clean%s\n' "$clean" "$total" "$said"
[ -z "$stopped" ] || printf 'sanitize: stopped, logs are in %s\n' "$logs"
[ "$clean" = "$total" ]
