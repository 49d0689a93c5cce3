#!/usr/bin/env bash
# claims: judged by files and by a run, and the commands of docs/claims.md. Usage: claims_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

without_gpu=("$project"/results/amd_epyc/*.json "$project"/results/intel_xeon/*.json)
published=("$project"/results/h200/*.json "${without_gpu[@]}")
expect 0 'flash_attention: holds' claims --from "${published[@]}"
expect 0 'because +over cuBLAS' claims --from "${published[@]}" --only flash_attention
expect 0 'NVIDIA H200' claims --only flash_attention --from "${published[@]}"
expect 0 'paged_attention_cost: not tested here' claims --from "${without_gpu[@]}"
expect 0 '\(simulated\)' claims --from "$project/results/intel_xeon/stack.json" --only stack_throughput
expect 0 'right  12.41' claims --demonstrations
expect 0 '^\| log-sum-exp' claims --demonstrations --markdown

"$program" claims --from "${published[@]}" --markdown >table.md || fail 'claims --markdown' 'it failed'
[ "$(grep -c '^| ' table.md)" = 12 ] || fail 'claims --markdown' 'it has other than ten lines below its head'
grep -q 'not tested here\*\*' table.md && fail 'claims --markdown' 'a claim is not tested by the published files'
"$program" claims --from "${published[@]}" -o report.md && cmp -s table.md report.md || fail 'claims -o report.md' 'it is no Markdown table'
"$program" claims --from "${published[@]}" -o report.json || fail 'claims -o report.json' 'it failed'
"$program" claims --from "${published[@]}" --json | cmp -s - report.json || fail 'claims --json' 'it differs from -o report.json'
grep -q '"schema": "inferometer.claims_report/1"' report.json || fail 'claims -o report.json' 'it is no report'

"$program" claims --from "${published[@]}" --markdown --brief >brief.md || fail 'claims --brief' 'it failed'
[ "$(grep -c '^| ' brief.md)" = 12 ] || fail 'claims --brief' 'it has other than ten lines below its head'
while IFS= read -r line; do
  grep -qxF -- "$line" "$project/README.md" || fail 'README' "its table of claims is not that of the published files: $line"
done <brief.md
expect 2 '--brief shortens the table of --markdown' claims --from "${published[0]}" --brief

expect 2 "unknown claim 'flash', nearest is 'flash_attention'" claims --from "${published[0]}" --only flash
expect 2 'missing.json' claims --from missing.json
expect 2 'no results file' claims --from "$project/experiments/quickstart.json"
# A file that was merged from parts on two kinds of GPU does not say where its rows ran.
sed 's/"name": "NVIDIA H200"/"name": "NVIDIA A100"/' "$project/results/h200/rms_norm.json" >other.json
expect 0 'rows of 2 parts' merge "$project/results/h200/rms_norm.json" other.json --allow devices,duplicates -o mixed.json
expect 2 'mixed.json: was merged from parts on NVIDIA H200 and on NVIDIA A100; give the parts' claims --from mixed.json
expect 2 'give one of the two' claims --from "${published[0]}" --json --markdown
expect 2 'take neither results nor claims' claims --demonstrations --from "${published[0]}"
expect 2 'missing.json' claims --claims missing.json
INFEROMETER_ROOT=$PWD expect 2 "list of claims is not at .*, so this is not the project's folder: start ./inferometer there" claims
expect 2 'is a results file' claims --from "${published[0]}" -o "${published[1]}"
expect 2 'is the list of claims' claims --from "${published[0]}" -o "$project/experiments/claims.json"
expect 2 '/dev/null is no regular file' claims --from "${published[0]}" -o /dev/null
expect 2 "unknown option '--form', nearest is '--from'" claims --form a.json
sed 's/"cuda.w4a16"/"cuda.w4a61"/' "$project/experiments/claims.json" >typo.json
expect 2 'typo.json: /claims/.*/variants/0: unknown variant of matmul' claims --claims typo.json --from "${published[0]}"

# A list short enough to be run: one claim for every machine, one for those with a GPU.
cat >short.json <<'JSON'
{"schema": "inferometer.claims/1", "claims": [
  {"id": "anywhere", "claim": "Two tilings take a time", "source": "this test", "conditions": "tiny", "parts": [
    {"name": "flash over naive", "experiment": "experiments/quickstart.json", "operator": "attention_prefill", "variants": ["cpu.flash"],
     "statistic": "ratio", "quantity": "time", "against": {"variant": "cpu.naive"}, "accepted": {"min": 0}}],
   "runs": [{"experiment": "experiments/quickstart.json", "variants": ["cpu.naive", "cpu.flash"], "filter": "not causal",
             "set": ["seq_len=16", "measure.min_samples=1", "measure.max_samples=1"]}]},
  {"id": "on_a_gpu", "claim": "A GPU takes a time", "source": "this test", "conditions": "tiny", "parts": [
    {"name": "flash over materialized", "experiment": "experiments/quickstart.json", "operator": "attention_prefill", "variants": ["cuda.flash"],
     "statistic": "ratio", "quantity": "time", "against": {"variant": "cuda.materialized"}, "accepted": {"min": 0}}],
   "runs": [{"experiment": "experiments/quickstart.json", "variants": ["cuda.materialized", "cuda.flash"], "filter": "not causal",
             "set": ["seq_len=128"], "gpu": true}]}]}
JSON
expect 0 'anywhere: holds' claims --claims short.json --quiet
[ -s inferometer-results/claims/anywhere.1.json ] || fail 'claims' 'a run left no results file'
grep -q '"status": "ok"' inferometer-results/claims/anywhere.1.json || fail 'claims' 'a run left no row'
if ! command -v nvidia-smi >/dev/null && [ ! -e /dev/nvidia0 ]; then
  expect 0 'on_a_gpu: not tested here' claims --claims short.json --only on_a_gpu
  expect 0 'no GPU here: 1 of the claims' claims --claims short.json --only on_a_gpu
  rm -rf inferometer-results
fi
# A row that fails costs the exit code, and is said not to count.
sed 's/"measure.max_samples=1"/"measure.max_samples=1", "limits.host_bytes=1000"/' short.json >starved.json
expect 1 '1 row out_of_memory' claims --claims starved.json --only anywhere --quiet
expect 1 '^2 rows of anywhere.1.json are out_of_memory: exit code 1$' claims --claims starved.json --only anywhere --quiet

# Every command of the page, from the project's folder. What runs sweeps for minutes is asked for its help instead.
cd -- "$project" || exit 1
commands=0
while IFS= read -r line; do
  line=${line%%#*}
  read -ra words <<<"${line#./inferometer }"
  case $line in *' --from '* | *--demonstrations*) ;; *) words+=(--help) ;; esac
  # Names of files may be patterns.
  expanded=()
  for word in "${words[@]}"; do
    # shellcheck disable=SC2206
    case $word in report.*) expanded+=("$work/$word") ;; *) expanded+=($word) ;; esac
  done
  expect 0 '' "${expanded[@]}"
  commands=$((commands + 1))
done < <(sed -n '/^```sh$/,/^```$/p' docs/claims.md | grep '^\./inferometer ')
[ "$commands" -ge 5 ] || fail 'docs/claims.md' "it has $commands commands"

echo
echo "$failures failures"
[ "$failures" = 0 ]
