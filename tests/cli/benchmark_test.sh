#!/usr/bin/env bash
# inferometer_benchmark as a user of Google Benchmark meets it.
# Usage: benchmark_test.sh PROGRAM PROGRAM_WITH_FAULTY_VARIANTS PROJECT_FOLDER
set -uo pipefail

program=$1
faulty=$2
project=$3
export INFEROMETER_ROOT=$project
export OMP_WAIT_POLICY=passive
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "operator": "attention_prefill", "variants": ["cpu.naive", "cpu.flash"],
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32", "causal": false}, "axes": {"seq_len": [16, 33]},
 "measure": {"min_samples": 1, "max_samples": 1, "max_seconds": 0.2, "cache": "warm"}}
JSON
cat >copy.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "copy", "operator": "test_copy", "fixed": {"n": 4096},
 "variants": ["cpu.right", "cpu.zeros", "cpu.aborts", "cpu.wrong_later", "cpu.choosy", "cpu.chatty"],
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "relative_ci": 0.5, "cache": "warm"}}
JSON

# Its flags work, and its names.
expect 0 'attention_prefill/cpu.flash/q_heads:2/.*q_len:33' tiny.json --benchmark_list_tests
expect 0 'cpu.flash.*q_len:16.*manual_time_median' tiny.json --benchmark_filter=cpu.flash.*q_len:16 --benchmark_repetitions=2
expect 0 '"real_time"' tiny.json --quick --variants cpu.naive --benchmark_format=json
expect 0 'CONFIG' --help

# A filter that matches nothing is an error, and an old file stays.
echo old >old.json
expect 2 'matches none of the 4 rows' tiny.json --benchmark_filter=nothing --benchmark_out=old.json
[ "$(cat old.json)" = old ] || fail 'filter' 'the old output file was touched'
expect 2 'no regular expression' tiny.json '--benchmark_filter=('
expect 2 'CONFIG is required' --benchmark_list_tests
expect 2 'missing.json' missing.json
expect 2 'nearest is .bf16' tiny.json --set dtype=bf17
expect 2 'noption' tiny.json --noption

# Rows that are wrong, or crash, or cannot be, are errors with the reason; the others have times.
"$faulty" copy.json --benchmark_out=out.json --benchmark_out_format=json >out.log 2>&1
code=$?
[ "$code" = 1 ] || fail 'faulty rows' "exit code $code instead of 1: $(cat out.log)"
if command -v python3 >/dev/null; then
  python3 - <<'PY' || fail 'faulty rows' "$(cat out.json)"
import json
rows = {b["name"].split("/")[1]: b for b in json.load(open("out.json"))["benchmarks"]}
errors = {"cpu.zeros": "incorrect: ", "cpu.aborts": "crashed: ", "cpu.wrong_later": "incorrect: after timing", "cpu.choosy": "unsupported: "}
assert len(rows) == 6
for name, row in rows.items():
    if name in errors:
        assert row["error_occurred"] and row["error_message"].startswith(errors[name]), row
    elif not row.get("error_occurred"):  # a busy machine may leave a time too uncertain
        assert row["real_time"] > 0 and row["iterations"] == 1, row
    else:
        assert row["error_message"].startswith("suspect: "), row
PY
fi

# Its JSON is what Google Benchmark's own comparison takes (Debian: libbenchmark-tools).
compare=/usr/share/benchmark/compare.py
if [ -e "$compare" ] && python3 -c 'import scipy' 2>/dev/null; then
  python3 "$compare" --no-color benchmarks out.json out.json >said 2>&1 || fail 'compare.py' "$(cat said)"
  grep -qE '^test_copy/cpu.right.* [+]0[.]0000 ' said || fail 'compare.py' "it did not compare the right row: $(cat said)"
fi

# Peers are rows as others are: right ones have a time and say what they ran on, wrong ones are errors.
if command -v python3 >/dev/null; then
  export INFEROMETER_ROOT=$work PEERS_FOLDER=$project/experiments/peers
  mkdir -p experiments/peers
  cp -- "$project/tests/cli/stand_in_peer.py" experiments/peers/
  cat >experiments/peers/stand_in.json <<'JSON'
{"schema": "inferometer.peer/1", "command": ["python3", "stand_in_peer.py"], "install": "pip install stand-in",
 "variants": {"matmul": {"cpu.peer_right": "right", "cpu.peer_lies": "one element wrong", "cpu.peer_crashes": "a signal"}}}
JSON
  cat >peers.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "peers", "operator": "matmul", "fixed": {"m": 3, "n": 4, "k": 16, "dtype": "f16"},
 "variants": ["cpu.peer_lies", "cpu.peer_crashes", "cpu.peer_right"],
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "relative_ci": 0.5, "cache": "warm"}}
JSON
  expect 1 'cpu.peer_right/m:3' peers.json --benchmark_out=peers.out --benchmark_out_format=json
  python3 - <<'PY' || fail 'peers' "$(cat peers.out)"
import json
rows = {b["name"].split("/")[1]: b for b in json.load(open("peers.out"))["benchmarks"]}
assert rows["cpu.peer_lies"]["error_message"].startswith("incorrect: "), rows
assert rows["cpu.peer_crashes"]["error_message"].startswith("crashed: "), rows
right = rows["cpu.peer_right"]
if not right.get("error_occurred"):
    assert right["real_time"] > 0 and "stand_in 1.2" in right["label"], right
else:  # a busy machine
    assert right["error_message"].startswith("suspect: "), right
PY
  echo '{"schema": "inferometer.peer/1"}' >experiments/peers/broken.json
  expect 2 'broken.json is no manifest of a peer' peers.json
fi

echo
echo "$failures failures"
[ "$failures" = 0 ]
