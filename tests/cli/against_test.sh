#!/usr/bin/env bash
# run --against: a new variant beside the one of an earlier results file. Usage: against_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "operator": "attention_prefill", "variants": ["cpu.naive"],
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32", "causal": false}, "axes": {"seq_len": [16, 33]},
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "cache": "warm"}}
JSON
expect 0 'cpu.naive' run tiny.json -o base.json --quiet

# Whatever this busy machine measures: no change counts below a threshold of a million times, so the exit code is 0.
expect 0 '2 of the rows were measured in turn' run tiny.json -o new.json --variants cpu.flash --against base.json --threshold 100000000% --quiet
expect 0 'cpu.flash over cpu.naive' run tiny.json -o new.json --variants cpu.flash --against base.json --threshold 100000000% --quiet
expect 0 '0 of the rows were measured in turn' run tiny.json -o new.json --against base.json --threshold 100000000% --quiet
expect 3 ' new ' run tiny.json -o new.json --set seq_len=17 --against base.json --threshold 100000000% --quiet

expect 2 'takes one config' run tiny.json -o new.json --against base.json --resume
expect 2 'takes one config' run tiny.json -o new.json --against base.json --devices 0,1
expect 2 'write 5% for a percentage' run tiny.json -o new.json --against base.json --threshold 5
expect 2 'threshold belongs to --against' run tiny.json -o new.json --threshold 5%
expect 2 'percentage, like 5% or 0.05' run tiny.json -o new.json --against base.json --threshold much
expect 2 'tiny.json: is no results file' run tiny.json -o new.json --against tiny.json
expect 2 'would overwrite the results to compare with' run tiny.json -o base.json --against base.json
expect 2 'missing.json' run tiny.json -o new.json --against missing.json

echo
echo "$failures failures"
[ "$failures" = 0 ]
