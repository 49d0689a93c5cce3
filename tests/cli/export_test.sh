#!/usr/bin/env bash
# export as other programs read it. Usage: export_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

results=("$project"/results/h200/attention_prefill.json "$project"/results/amd_epyc/kv_policies.json)
for format in csv junit google-benchmark nvbench; do
  "$program" export "${results[@]}" --format "$format" -o "out.$format" || fail "$format" 'it failed'
  "$program" export "${results[@]}" --format "$format" | cmp -s - "out.$format" || fail "$format" 'standard output differs'
done
if command -v python3 >/dev/null; then
  python3 - "${results[@]}" <<'PY' || fail 'export' 'another program cannot read it'
import csv, json, sys, xml.etree.ElementTree as tree
files = [json.load(open(path)) for path in sys.argv[1:]]
rows = [row for file in files for row in file["rows"]]
lines = list(csv.DictReader(open("out.csv", newline="")))
assert [line["id"] for line in lines] == [row["id"] for row in rows]
for line, row in zip(lines, rows):
    assert line["status"] == row["status"] and line["variant"] == row["variant"]
    if row["timing"]: assert float(line["headline_ns"]) == row["timing"]["headline_ns"]
suites = tree.parse("out.junit").getroot().findall("testsuite")
assert [suite.get("name") for suite in suites] == [file["name"] for file in files]
assert sum(len(suite.findall("testcase")) for suite in suites) == len(rows)
benchmarks = json.load(open("out.google-benchmark"))["benchmarks"]
assert len(benchmarks) == len(rows) and len({b["name"] for b in benchmarks}) == len(rows)
for benchmark, row in zip(benchmarks, rows):
    assert benchmark.get("error_occurred", False) == (row["timing"] is None)
states = [s for b in json.load(open("out.nvbench"))["benchmarks"] for s in b["states"]]
assert len(states) == len(rows)
PY
fi
# Google Benchmark's own comparison takes it, failed and unsupported rows too (Debian: libbenchmark-tools).
compare=/usr/share/benchmark/compare.py
if [ -e "$compare" ] && python3 -c 'import scipy' 2>/dev/null; then
  python3 "$compare" --no-color benchmarks out.google-benchmark out.google-benchmark >said 2>&1 || fail 'compare.py' "$(cat said)"
  [ "$(grep -cE '^attention_prefill/cuda.* [+]0[.]0000 ' said)" -ge 100 ] || fail 'compare.py' "it compared too few rows: $(tail -n 3 said)"
fi

expect 2 "nearest is 'nvbench'" export "${results[0]}" --format nvbnch
expect 2 'format is missing: csv, junit, google-benchmark, nvbench' export "${results[0]}"
expect 2 'no results file' export "$project/experiments/quickstart.json" --format csv
expect 2 'one of the results' export out.csv --format csv -o out.csv
expect 2 '/dev/null is no regular file' export "${results[0]}" --format csv -o /dev/null
cp -- "${results[1]}" kept.json
expect 2 'kept.json is a results file' export "${results[0]}" --format csv -o kept.json
expect 2 'cannot write' export "${results[0]}" --format csv -o /proc/out.csv
echo '{"schema": "inferometer.results/1", "rows": [{}], "environment": {}}' >empty.json
for format in csv junit google-benchmark nvbench; do expect 2 'lacks what it should have' export empty.json --format "$format"; done
sed 's/"max_sm_mhz": *[0-9]*/"max_sm_mhz": "NaN"/' "${results[0]}" >words.json
sed 's/"schema": *"[^"]*"/"schema": []/' "${results[1]}" >schema.json
for format in csv nvbench; do expect 2 'schema.json: .*must be string' export schema.json --format "$format"; done
expect 2 'words.json: .*expected a whole number in range, got "NaN"' export words.json --format nvbench

echo
echo "$failures failures"
[ "$failures" = 0 ]
