#!/usr/bin/env bash
# One shard of a sweep for each task of a Slurm job array:
#
#   sbatch --array=1-8 --gres=gpu:1 experiments/cluster/slurm_array.sh CONFIG.json OUTPUT_FOLDER [options of run]
#   inferometer merge OUTPUT_FOLDER/*.shard-*.json -o OUTPUT_FOLDER/full.json        (when the array is through)
#
# The number of tasks is the number of shards. A task that Slurm starts again goes on where it was. INFEROMETER names the
# program where it is not ./inferometer in the folder from which the job was sent; all nodes must run the same binary,
# or merge refuses the parts.
set -euo pipefail

if [ $# -lt 2 ]; then
  sed -n '2,9s/^# \{0,1\}//p' -- "${BASH_SOURCE[0]}" >&2
  exit 2
fi
config=$1
folder=$2
shift 2
if [ -z "${SLURM_ARRAY_TASK_ID:-}" ]; then
  echo 'slurm_array.sh: not a task of a job array: send it with sbatch --array=1-N' >&2
  exit 2
fi

# Arrays may begin anywhere and go in steps: 0-7, 10-24:2.
first=${SLURM_ARRAY_TASK_MIN:-1}
step=${SLURM_ARRAY_TASK_STEP:-1}
shards=${SLURM_ARRAY_TASK_COUNT:-1}
shard=$(((SLURM_ARRAY_TASK_ID - first) / step + 1))

program=${INFEROMETER:-${SLURM_SUBMIT_DIR:-.}/inferometer}
mkdir -p -- "$folder"
exec "$program" run "$config" -o "$folder/" --shard "$shard/$shards" --resume --quiet "$@"
