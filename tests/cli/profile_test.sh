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
expect 2 '--row is required' profile tiny.json
expect 2 'add --tool' profile tiny.json --row "$cpu" --print
expect 2 'profile: --seed must be a decimal integer' profile tiny.json --row "$cpu" --seed -1
expect 2 'no row' profile tiny.json --row ffffffffffff

# A tool that is not there, and one that runs what follows its own options.
PATH=/usr/bin:/bin expect 2 'nsys is not on PATH.*the command is: nsys profile' profile tiny.json --row "$cpu" --tool nsys
mkdir tools
printf '#!/bin/sh\nwhile [ "${1#/}" = "$1" ]; do shift; done\nexec "$@"\n' >tools/nsys
chmod +x tools/nsys
export PATH=$work/tools:$PATH
expect 0 "$cpu: ok, launched 5 times" profile tiny.json --row "$cpu" --tool nsys
[ -d inferometer-results ] || fail 'profile' 'no folder for the report'

# The line that a results row carries is one that works.
line=$(grep -oE '"profile": "[^"]*"' out.json | head -n 1 | cut -d '"' -f 4)
[[ $line == "./inferometer profile tiny.json --row "*" --tool nsys" ]] || fail 'results' "the profile line is: $line"
read -ra words <<<"${line#./inferometer }"
expect 0 'launched 5 times' "${words[@]}"
[ "$failures" = 0 ]
