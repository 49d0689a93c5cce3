#!/usr/bin/env bash
# Sweeps in parts: --shard, --devices, merge and the script for job arrays, without a scheduler.
# Usage: shard_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "question": "Does it run?", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cpu.flash"], "baseline": "cpu.naive",
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32"},
 "axes": {"seq_len": [16, 33], "causal": [false, true]},
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "cache": "warm"}}
JSON

# The shards are the sweep.
for shard in 1 2 3; do expect 0 'cpu.flash' run tiny.json -o parts/ --shard "$shard/3" --quiet; done
expect 0 '8 rows of 3 parts' merge parts/tiny.shard-1-of-3.json parts/tiny.shard-3-of-3.json parts/tiny.shard-2-of-3.json -o full.json
[ "$(measured_rows full.json)" = 8 ] || fail 'merge' 'full.json lacks 8 measured rows'
ids() { grep -o '"id": *"[0-9a-f]*"' "$1"; }
"$program" run tiny.json -o whole.json --quiet >/dev/null
[ "$(ids full.json)" = "$(ids whole.json)" ] || fail 'merge' 'its rows are not those of the sweep, in their order'
expect 0 '# Results' report full.json
expect 0 'New time over base time' compare full.json full.json

# What is missing or twice is named.
missing=$(ids parts/tiny.shard-2-of-3.json | head -n 1 | grep -o '[0-9a-f]\{12\}')
expect 3 "rows of the sweep are in no part: .*$missing" merge parts/tiny.shard-1-of-3.json parts/tiny.shard-3-of-3.json -o part.json
expect 2 "row $missing is in tiny.shard-2-of-3.json and in whole.json" merge parts/tiny.shard-2-of-3.json whole.json -o no.json
expect 0 '8 rows of 2 parts' merge parts/tiny.shard-2-of-3.json whole.json -o double.json --allow duplicates
[ ! -e no.json ] || fail 'merge' 'a refused merge wrote its file'

# Wrong use.
"$program" run tiny.json -o seed.json --quiet --seed 2 --shard 1/3 >/dev/null
expect 2 'differ in config: seed is 1 and 2' merge parts/tiny.shard-2-of-3.json seed.json -o no.json
expect 2 'is one of the parts' merge full.json -o full.json
expect 2 'merge: cannot write' merge full.json -o /proc/full.json
expect 2 'cannot be read as a results file' merge full.json -o tiny.json
expect 2 '-o FULL.json is missing' merge full.json
expect 2 "nearest is 'duplicates'" merge full.json -o no.json --allow duplicate
expect 2 'is no results file' merge tiny.json -o no.json
echo '{"schema": "inferometer.results/1", "rows": [], "environment": {}}' >empty.json
expect 2 'lacks what results files have' merge empty.json -o no.json
for wrong in 0/3 4/3 1 a/b 1/3/2 -1/3; do expect 2 'shard must be I/N' run tiny.json --dry-run --shard "$wrong"; done
expect 2 'too few for 9 shards' run tiny.json --dry-run --shard 1/9
expect 2 'give one of the two' run tiny.json --dry-run --shard 1/3 --row "$missing"

# Several devices: CPU rows run alone, on the first.
expect 0 'cpu.flash' run tiny.json -o devices.json --devices 0,0 --quiet
[ "$(measured_rows devices.json)" = 8 ] || fail 'devices' 'devices.json lacks 8 measured rows'
[ "$(sed -n '/^ "rows": \[/,$p' devices.json | grep -c '"device": "cpu"')" = 8 ] || fail 'devices' 'the file does not say where its rows ran'
expect 2 'one device, --devices names 2' run tiny.json -o no.json --devices 0,1 --in-process
expect 2 'excludes' run tiny.json -o no.json --devices 0,1 --device 1
expect 2 'devices' run tiny.json -o no.json --devices 0,x

# The script for Slurm, with the variables that Slurm sets.
script=$project/experiments/cluster/slurm_array.sh
for task in 0 4; do
  SLURM_ARRAY_TASK_ID=$task SLURM_ARRAY_TASK_MIN=0 SLURM_ARRAY_TASK_STEP=4 SLURM_ARRAY_TASK_COUNT=2 INFEROMETER=$program \
    bash "$script" tiny.json array --set dtype=f16 >/dev/null 2>array.log
  [ $? -le 1 ] || fail 'slurm_array.sh' "$(cat array.log)"  # 1: a matter of timing, the rows are counted below
done
expect 0 '8 rows of 2 parts' merge array/tiny.shard-1-of-2.json array/tiny.shard-2-of-2.json -o array.json
bash "$script" tiny.json array 2>array.log
[ $? = 2 ] && grep -q 'sbatch --array' array.log || fail 'slurm_array.sh' 'outside an array it does not say how to use it'

echo
echo "$failures failures"
[ "$failures" = 0 ]
