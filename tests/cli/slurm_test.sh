#!/usr/bin/env bash
# experiments/cluster/slurm_array.sh under a real Slurm of one node, started here and stopped again.
# Usage: slurm_test.sh PROGRAM PROJECT_FOLDER. Skipped (77) where slurm-wlm is not installed or this is not root.
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
for tool in slurmctld slurmd munged sbatch squeue scontrol; do
  command -v "$tool" >/dev/null || { echo "skipped: $tool is not installed (Debian: slurm-wlm)"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo 'skipped: slurmd needs root'; exit 77; }
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

# --- a cluster of this machine, on ports and in folders of its own --------------------------------------------------

daemons=()
stop() {
  for daemon in ${daemons[@]+"${daemons[@]}"}; do kill "$daemon" 2>/dev/null; done
  wait
  rm -rf -- "$work"
}
trap stop EXIT

host=$(hostname -s)
port=$((20000 + RANDOM % 20000))
chmod 755 "$work"
mkdir -p munge state spool
chmod 700 munge
head -c 1024 /dev/urandom >munge/key
chmod 600 munge/key
munged --foreground --force --key-file="$work/munge/key" --socket="$work/munge/socket" --pid-file="$work/munge/pid" \
  --seed-file="$work/munge/seed" --log-file="$work/munge/log" >/dev/null 2>&1 &
daemons+=($!)
cat >slurm.conf <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge/socket
CredType=cred/munge
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=$host Default=YES State=UP OverSubscribe=FORCE:4
CONF
export SLURM_CONF=$work/slurm.conf
for _ in $(seq 600); do [ -S munge/socket ] && break; sleep 0.1; done
slurmctld -D -c >/dev/null 2>&1 &
daemons+=($!)
slurmd -D -c >/dev/null 2>&1 &
daemons+=($!)
for _ in $(seq 1200); do
  sinfo --noheader --format %t 2>/dev/null | grep -q idle && break
  sleep 0.1
done
if ! sinfo --noheader --format %t 2>/dev/null | grep -q idle; then
  echo "skipped: no Slurm came up here: $(tail -n 5 slurmctld.log slurmd.log munge/log 2>/dev/null)"
  exit 77
fi

# --- a sweep of four problems as an array of three tasks ------------------------------------------------------------

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "question": "Does it run?", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cpu.flash"], "baseline": "cpu.naive",
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32"},
 "axes": {"seq_len": [16, 33], "causal": [false, true]},
 "measure": {"min_samples": 1, "max_samples": 1, "max_seconds": 0.2, "cache": "warm"}}
JSON
export INFEROMETER=$program
# Ids that begin at 10 and go in steps of 5: the shards are 1, 2 and 3 all the same.
sbatch --wait --quiet --array=10-20:5 --output="$work/task-%a.log" "$project/experiments/cluster/slurm_array.sh" \
  "$work/tiny.json" "$work/parts" --seed 3 || fail 'sbatch' "a task failed: $(cat task-*.log)"
for shard in 1 2 3; do
  [ -s "parts/tiny.shard-$shard-of-3.json" ] || fail 'slurm' "shard $shard has no file: $(cat task-*.log)"
done
expect 0 '8 rows of 3 parts' merge parts/tiny.shard-*.json -o full.json
[ "$(measured_rows full.json)" = 8 ] || fail 'slurm' 'full.json lacks 8 measured rows'
grep -q '"seed": 3,' full.json || fail 'slurm' 'the options of run did not arrive'

# Another array of the same sweep holds the same rows.
sbatch --wait --quiet --array=1-3 --output="$work/again-%a.log" "$project/experiments/cluster/slurm_array.sh" \
  "$work/tiny.json" "$work/again" --seed 3 || fail 'sbatch' "a task failed: $(cat again-*.log)"
expect 2 'is in tiny.shard-1-of-3.json' merge parts/tiny.shard-*.json again/tiny.shard-1-of-3.json -o double.json

echo
echo "$failures failures"
[ "$failures" = 0 ]
