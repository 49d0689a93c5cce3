#!/usr/bin/env bash
# `profile` as a user meets it, with stand-ins for the tools. Usage: profile_test.sh PROGRAM
set -uo pipefail

program=$1
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "question": "Does it run?", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cuda.flash_sm80"], "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32"},
 "axes": {"seq_len": [16, 33]}, "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.1}}
JSON
"$program" run tiny.json -o out.json --quiet >/dev/null 2>&1
id_of() { "$program" run tiny.json --dry-run --variants "$1" 2>/dev/null | grep -oE '\b[0-9a-f]{12}\b' | head -n 1; }
cpu=$(id_of cpu.naive)
gpu=$(id_of cuda.flash_sm80)

expect 0 "attention_prefill/cpu.naive/$cpu: ok, launched 5 times" profile tiny.json --row "$cpu"
expect 0 'launched 2 times' profile tiny.json --row "$cpu" --launches 2
expect 0 'unsupported' profile tiny.json --row "$gpu"
expect 0 '^nsys profile .*--nvtx-capture=measure@inferometer.* profile tiny.json --row' profile tiny.json --row "$cpu" --tool nsys --print
expect 0 '^nsys profile .*--capture-range=cudaProfilerApi' profile tiny.json --row "$gpu" --tool nsys --print
expect 0 '^ncu .*--nvtx-include=inferometer@measure/' profile tiny.json --row "$gpu" --tool ncu --print
expect 2 'take --tool nsys' profile tiny.json --row "$cpu" --tool ncu --print
expect 2 "nearest is 'nsys'" profile tiny.json --row "$cpu" --tool nsis
expect 2 '--row is required; .run CONFIG --dry-run. lists ids' profile tiny.json
expect 2 'add --tool' profile tiny.json --row "$cpu" --print
expect 2 'profile: --seed must be a decimal integer' profile tiny.json --row "$cpu" --seed -1
expect 2 'no row' profile tiny.json --row ffffffffffff

# A tool that is not there, and one that runs what follows its own options.
mkdir bare
ln -s "$(command -v timeout)" "$(command -v grep)" bare/
PATH=$work/bare expect 2 'nsys is not on PATH.*the command is: nsys profile' profile tiny.json --row "$cpu" --tool nsys
mkdir no_programs
: >no_programs/nsys
PATH=$work/bare:$work/no_programs expect 2 'nsys .* may not be executed; .*the command is: nsys profile' profile tiny.json --row "$cpu" --tool nsys
mkdir tools
printf '#!/bin/sh\nwhile [ "${1#/}" = "$1" ]; do shift; done\nexec "$@"\n' >tools/nsys
chmod +x tools/nsys
export PATH=$work/tools:$PATH
expect 0 "$cpu: ok, launched 5 times" profile tiny.json --row "$cpu" --tool nsys
[ -d inferometer-results ] || fail 'profile' 'no folder for the report'

# The kernels of a peer run in its adapter's process, where ncu is not told what is measured.
mkdir -p with_peers/experiments/peers
cat >with_peers/experiments/peers/other.json <<'JSON'
{"schema": "inferometer.peer/1", "command": ["nowhere"], "install": "-", "variants": {"attention_prefill": {"other.flash": "-"}}}
JSON
sed 's/"cpu.naive", /"other.flash", /' tiny.json >peer.json
peer=$(INFEROMETER_ROOT=$work/with_peers "$program" run peer.json --dry-run --variants other.flash 2>/dev/null | grep -oE '\b[0-9a-f]{12}\b' | head -n 1)
INFEROMETER_ROOT=$work/with_peers expect 2 "other.flash run in its adapter's: take --tool nsys" profile peer.json --row "$peer" --tool ncu --print
INFEROMETER_ROOT=$work/with_peers expect 0 '^nsys profile' profile peer.json --row "$peer" --tool nsys --print

# Counters of ncu, from a stand-in that writes the log which $NCU_LOG names, or none, and ends with $NCU_EXIT_CODE.
cat >tools/ncu <<'SH'
#!/bin/sh
for word; do case $word in --log-file=*) log=${word#*=} ;; esac; done
[ -z "$NCU_LOG" ] || cp -- "$NCU_LOG" "$log"
exit "${NCU_EXIT_CODE:-0}"
SH
chmod +x tools/ncu
{
  echo '==PROF== Connected to process 7 (inferometer)'
  echo '"ID","Kernel Name","Device","CC","dram__bytes.sum","gpu__time_duration.sum","sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed","sm__warps_active.avg.pct_of_peak_sustained_active"'
  echo '"","","","","byte","nsecond","%","%"'
  for launch in 0 1 2 3 4; do echo "\"$launch\",\"void flash<64, 32>()\",\"0\",\"9.0\",\"2,000,000\",\"10,000\",\"60.5\",\"25\""; done
} >counted.csv
sed 3d counted.csv >unitless.csv
sed '$d' counted.csv >four.csv
echo '==ERROR== ERR_NVGPUCTRPERM - The user does not have permission' >denied.csv
echo '==WARNING== No kernels were profiled.' >nothing.csv
sed "/\"id\": \"$gpu\"/,/\"status\"/ s/\"status\": \"[a-z]*\"/\"status\": \"ok\"/; s/\"sm\": [0-9]*/\"sm\": 90/" out.json >measured.json
cp measured.json before.json
collect() { expect "$1" "$2" profile tiny.json --row "$gpu" --tool ncu --collect "${@:3}"; }
unchanged() { cmp -s before.json measured.json || fail "$1" 'the results file was touched'; }

collect 0 '^ncu .*--csv --page=raw --print-units=base --metrics=gpu__time_duration.sum,dram__bytes.sum,.*--cache-control=all' measured.json --print
collect 2 'row .* has no time that counters could be set beside: it is unsupported' out.json
collect 2 'no-such.json' no-such.json
NCU_LOG=denied.csv NCU_EXIT_CODE=1 collect 1 'ERR_NVGPUCTRPERM.*--cap-add=SYS_ADMIN' measured.json
NCU_LOG=nothing.csv collect 1 'it counted no kernel; it says ==WARNING== No kernels were profiled' measured.json
NCU_LOG=unitless.csv collect 1 'must hold units' measured.json
NCU_LOG=four.csv collect 1 'ncu counted 4 kernels in 5 launches' measured.json
NCU_LOG=counted.csv NCU_EXIT_CODE=3 collect 1 'ncu ended with exit code 3; its log is .*ncu.csv' measured.json
NCU_LOG='' collect 1 'it counted no kernel' measured.json  # and the log of the run before is not read
PATH=$work/bare collect 2 'ncu is not on PATH.*; it comes with the CUDA Toolkit' measured.json
unchanged 'refused counters'
expect 2 'add --tool ncu' profile tiny.json --row "$gpu" --collect measured.json
expect 2 'from --tool ncu alone' profile tiny.json --row "$gpu" --tool nsys --collect measured.json
NCU_LOG=counted.csv collect 0 'ncu_dram_bytes 2.00 MB' measured.json
for metric in '"ncu_kernels": 1.0' '"ncu_time_ns": 10000.0' '"ncu_dram_bytes": 2000000.0' '"ncu_tensor_pipe_ratio": 0.605' '"ncu_occupancy_ratio": 0.25'; do
  grep -q "$metric" measured.json || fail 'collect' "the row lacks $metric"
done
expect 0 'flash_sm80' export measured.json --format csv

# The line that a results row carries is one that works.
line=$(grep -oE '"profile": "[^"]*"' out.json | head -n 1 | cut -d '"' -f 4)
[[ $line == "./inferometer profile tiny.json --row "*" --tool nsys" ]] || fail 'results' "the profile line is: $line"
read -ra words <<<"${line#./inferometer }"
expect 0 'launched 5 times' "${words[@]}"
[ "$failures" = 0 ]
