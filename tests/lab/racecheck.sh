# racecheck.sh GPU_TESTS OUT [PATCHED_GPU_TESTS]: which hazards racecheck names, kernel by kernel, and what makes them go. About 4 minutes.
T=$1; O=$2; P=${3:-}; mkdir -p "$O"
case_short='prefill: sequences without keys give 0 and -infinity\, those without queries give nothing'
case_128='prefill: a sequence of a ragged batch gets the bits that it gets alone'
run() { # NAME SANITIZER PROGRAM CASE OPTIONS...
  local name=$1 sanitizer=$2 program=$3 test=$4; shift 4
  timeout -k 5 100 "$sanitizer" --tool racecheck --error-exitcode 99 --print-limit 200 "$@" "$program" "$test" >"$O/$name.log" 2>&1
  echo "$name rc $? $(grep -E 'SUMMARY|overflow' "$O/$name.log" | tr '\n' ' ')"
}
cs=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
"$cs" --version | tail -1
n='--num-cuda-barriers 128'
run sm90_as_today "$cs" "$T" "$case_short" --kernel-name kns=flash_sm90_kernel &
run sm90_barriers "$cs" "$T" "$case_short" --kernel-name kns=flash_sm90_kernel $n --racecheck-report all &
run sm90_128 "$cs" "$T" "$case_128" --kernel-name kns=flash_sm90_kernel $n --racecheck-report all &
run sm80 "$cs" "$T" "$case_short" --kernel-name kns=flash_sm80_kernel $n & wait
run softmax "$cs" "$T" 'prefill: rows of scores around every length the softmax treats differently are right' --kernel-name kns=scores_softmax &
run cublas "$cs" "$T" 'prefill: random plain problems are right' --kernel-name-exclude kns=inferometer $n &
if [ -n "$P" ]; then
  run patched "$cs" "$P" "$case_short" --kernel-name kns=flash_sm90_kernel $n --racecheck-report all &
  run patched_128 "$cs" "$P" "$case_128" --kernel-name kns=flash_sm90_kernel $n --racecheck-report all &
fi
wait
timeout -k 5 100 "$cs" --tool synccheck --check-warpgroup-mma yes --error-exitcode 99 $n --kernel-name kns=flash_sm90_kernel "$T" 'prefill: scores that rise\, fall\, jump or are huge are right at head_dim 64' >"$O/synccheck.log" 2>&1 &
wait; grep -hE 'SUMMARY|Barrier error' "$O/synccheck.log" | sort | uniq -c | head
