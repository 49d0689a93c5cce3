#!/usr/bin/env bash
# The program as a user meets it: exit codes, messages, files. Usage: run_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

unset INFEROMETER_CUDA  # the caller may test another build; a reason names it
cat >tiny.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "tiny", "question": "Does it run?", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cpu.flash"], "baseline": "cpu.naive",
 "fixed": {"q_heads": 2, "kv_heads": 1, "head_dim": 32, "dtype": "f32"},
 "axes": {"seq_len": [16, 33], "causal": [false, true]},
 "measure": {"min_samples": 20, "max_samples": 60, "max_seconds": 0.2, "cache": "warm"}}
JSON
# variant OLD NEW FILE: tiny.json with one text replaced.
variant() { sed "s|$1|$2|" tiny.json >"$3"; }

# The main job.
expect 0 'cpu.flash' run tiny.json -o out.json --quiet
[ "$(measured_rows out.json)" = 8 ] || fail 'results' 'out.json lacks 8 measured rows'
[ ! -e out.json.jsonl ] || fail 'journal' 'a finished run left its journal'
expect 0 'cpu.flash' run tiny.json -o inproc.json --in-process --quiet
expect 2 'leave out --in-process' run tiny.json -o no.json --in-process --set measure.kernel_times=true
expect 0 '^\[1/8\] attention_prefill/cpu.naive q_len=16 kv_len=16 causal=false [a-z]+ [0-9.]+ ' run tiny.json -o lines.json
expect 0 'q_len' run tiny.json --dry-run
expect 0 'cpu.naive' run tiny.json -o filtered.json --filter 'q_len == 16 and causal' --quiet
[ "$(measured_rows filtered.json)" = 2 ] || fail 'filter' 'expected 2 rows'
expect 0 'cpu.flash' run tiny.json -o set.json --set seq_len=8 --variants 'cpu.f*' --quiet
id=$("$program" run tiny.json --dry-run 2>/dev/null | grep -oE '\b[0-9a-f]{12}\b' | head -n 1)
expect 0 "$id" run tiny.json --dry-run --row "$id"
expect 0 'cpu' run tiny.json
mkdir results
expect 0 'cpu' run tiny.json -o results
[ -s results/tiny.json ] || fail 'a folder as output' 'results/tiny.json is missing'
expect 0 'cpu' run tiny.json -o "$work/new/folder/" --quiet
[ -s new/folder/tiny.json ] || fail 'a new folder as output' 'new/folder/tiny.json is missing'
[ -s inferometer-results/tiny.json ] || fail 'default output' 'inferometer-results/tiny.json is missing'

# What a results file says of its run holds no folder of this machine.
expect 0 'cpu' run "$work/tiny.json" -o "$work/elsewhere.json" --quiet --set seq_len=8
grep -A 10 '"argv"' elsewhere.json | grep -q '"elsewhere.json"' || fail 'argv' 'the name of the output is missing'
grep -A 10 '"argv"' elsewhere.json | grep -qF "$work" && fail 'argv' 'it holds the path of the output or the config'
(cd / && INFEROMETER_ROOT=$work "$program" run "$work/tiny.json" -o "$work/inside.json" --quiet >/dev/null 2>&1)
grep -q 'inferometer run tiny.json --row' inside.json || fail 'reproduce' 'the config is not named from the project on'

expect 0 "$id" run tiny.json --row "$id"
[ -s "inferometer-results/tiny.$id.json" ] || fail 'one row' 'it has no file of its own'
[ "$(measured_rows inferometer-results/tiny.json)" = 8 ] || fail 'one row' 'it took the place of the whole sweep'

# Lists.
for what in operators variants experiments; do expect 0 'attention' list "$what"; done
expect 0 '"attention_prefill"' list operators --json
expect 0 'cuda.flash_sm80' list variants

# Help and wrong use.
expect 0 'run' --help
expect 0 'filter' run --help
expect 2 'run' rnu tiny.json
expect 2 'quick' run tiny.json --quik
expect 2 'no.such|No such|cannot|not' run missing.json
expect 2 'no file .kv_policies.; the nearest experiment is .*experiments/kv_policies.json' run kv_policies
expect 2 'nearest experiment is .*experiments/attention_prefill.json' run attention_prefil.json
expect 2 '.' run
mkdir folder.json
expect 2 'folder.json' run folder.json

# Configs that are wrong.
echo '{"schema": ' >cut.json
expect 2 'cut.json' run cut.json
: >empty.json
expect 2 'empty.json' run empty.json
variant '"question"' '"qestion"' key.json
expect 2 'qestion.*question' run key.json
variant 'inferometer.sweep/1' 'inferometer.sweep/9' schema.json
expect 2 'inferometer.sweep/1' run schema.json
variant 'attention_prefill' 'attention_prefil' operator.json
expect 2 'attention_prefill' run operator.json
variant '"causal"' '"casual"' axis.json
expect 2 'causal' run axis.json
variant '"cpu.naive", "cpu.flash"' '"cpu.naive", "cpu.flsh"' typo.json
expect 2 'cpu.flash' run typo.json
variant '\[16, 33\]' '[16, "x"]' type.json
expect 2 'seq_len' run type.json
variant '\[16, 33\]' '[]' none.json
expect 2 'seq_len' run none.json
variant '\[16, 33\]' '[0]' zero.json
expect 2 'q_len|seq_len' run zero.json
variant '\[16, 33\]' '[-4]' negative.json
expect 2 'q_len|seq_len' run negative.json
variant '\[16, 33\]' '[1000000000000]' huge.json
expect 2 'q_len|seq_len|overflow|2\^63' run huge.json
variant '\[16, 33\]' '[16.5]' fraction.json
expect 2 'seq_len' run fraction.json
variant '"head_dim": 32' '"head_dim": 33' multiple.json
expect 2 'head_dim' run multiple.json
variant '"kv_heads": 1' '"kv_heads": 3' heads.json
expect 2 'kv_heads' run heads.json
variant '"dtype": "f32"' '"dtype": "f23"' dtype.json
expect 2 'f32' run dtype.json
expect 2 "column 7.*'=='" run tiny.json --filter 'q_len = 16'
expect 2 'causal' run tiny.json --filter 'casual'
expect 2 '.' run tiny.json --set nonsense
expect 2 '.' run tiny.json --row ffffffffffff

# A filter that matches nothing leaves the old file alone.
before=$(sha256sum <out.json)
expect 2 '.' run tiny.json -o out.json --filter 'q_len == 17'
[ "$(sha256sum <out.json)" = "$before" ] || fail 'old output' 'an empty filter changed it'

# Output that cannot be written is found before the first row.
expect 2 'nowhere' run tiny.json -o /proc/nowhere/out.json
expect 2 'out.json' run tiny.json -o /proc/out.json
expect 2 '/dev/full|full|space' run tiny.json -o /dev/full

# A config is never overwritten: not by name, by a link, by the folder it stands in, nor by the journal.
before=$(sha256sum <tiny.json)
ln -s tiny.json link.json
cp tiny.json tiny.jsonl
expect 2 'would overwrite the config tiny.json' run tiny.json -o tiny.json
expect 2 'would overwrite the config' run tiny.json -o link.json
expect 2 'would overwrite the config' run tiny.json -o .
expect 2 'would overwrite the config tiny.jsonl' run tiny.jsonl -o ./tiny.json
if ! cmp -s tiny.json tiny.jsonl || [ "$(sha256sum <tiny.json)" != "$before" ]; then fail 'configs' 'one was overwritten'; fi

# Options that are not what they seem.
for seed in -1 18446744073709551616 '' 0x10 '1 ' +1; do expect 2 '--seed must be' run tiny.json --dry-run --seed "$seed"; done
expect 0 'cpu' run tiny.json -o seed.json --quiet --seed 010 --filter 'q_len == 16'
grep -q '"seed": 10,' seed.json || fail 'seed' '010 is not decimal'
for option in -o --filter --row; do expect 2 'must not be empty' run tiny.json --dry-run "$option" ''; done
expect 2 'must not be empty' report out.json -o ''
expect 2 'UTF-8' run tiny.json --dry-run --set $'dtype=\xff'
expect 2 'UTF-8' run tiny.json --dry-run --filter $'variant == "\xff"'

# Reports: what cannot be one, and what they may replace.
expect 0 '# Results' report out.json
expect 0 '' report out.json -o report.md
expect 0 '' report set.json -o report.md
expect 0 '' report out.json set.json -o report.html
expect 0 '' report out.json -o report.html
grep -q '<h2>Does it run?</h2>' report.html || fail 'report' 'the page lacks its question'
expect 2 'not written by report' report out.json -o report.html --markdown
expect 2 'one of the results' report out.json -o out.json
expect 2 'not written by report' report out.json -o tiny.json
expect 2 'no file that a report could replace' report out.json -o results
expect 2 'cannot write' report out.json -o /proc/report.md
expect 2 'one of the results|not written by report' report out.json -o ./out.json
expect 2 'folder.json' report folder.json

expect 0 'New time over base time' compare out.json out.json
expect 0 '[|] verdict' compare out.json out.json --all --markdown
expect 2 'write 5% for a percentage' compare out.json out.json --threshold 5
expect 2 'write 1% for a percentage' compare out.json out.json --threshold 1
expect 0 'threshold 100[.]0 %' compare out.json out.json --threshold 100%
expect 2 'percentage, like 5% or 0.05' compare out.json out.json --threshold much
expect 2 'folder.json' compare out.json folder.json
expect 2 'no results file' compare out.json tiny.json
echo '{"rows": 1e999}' >large_number.json
expect 2 'large_number.json' report large_number.json
sed 's|"rows": \[|"rows": null, "other": [|' out.json >null_rows.json
expect 2 'null_rows.json.*rows must be a list' report null_rows.json
for key in speedup speedup_ci problem check; do
  sed "s|\"$key\":|\"other\":|" out.json >lacks.json
  expect 2 "lacks.json.*'$key'" report lacks.json -o lacks.html
done
grep -q '"schema": "inferometer.results/1"' out.json || fail 'report' 'it overwrote its source'

# Output that does not arrive is a failure; a stream that is closed is not taken by a file.
for arguments in --help 'list operators' 'report out.json' 'run tiny.json --dry-run' 'run tiny.json -o lost.json --quiet'; do
  # shellcheck disable=SC2086
  message=$("$program" $arguments 2>&1 >/dev/full)
  code=$?
  [ "$code" = 1 ] || fail "$arguments >/dev/full" "exit code $code instead of 1"
  grep -q 'standard output could not be written' <<<"$message" || fail "$arguments >/dev/full" "it said: $message"
done
"$program" run tiny.json -o closed_out.json --quiet "${one_sample[@]}" >&- 2>closed.err || fail 'closed stdout' "$(cat closed.err)"
"$program" run tiny.json -o closed_err.json "${one_sample[@]}" >/dev/null 2>&- || fail 'closed stderr' "exit code $?"
"$program" run tiny.json -o closed_all.json "${one_sample[@]}" <&- >&- 2>&- || fail 'all streams closed' "exit code $?"
for file in closed_out.json closed_err.json closed_all.json; do
  [ "$(measured_rows "$file")" = 8 ] || fail "$file" 'lacks 8 measured rows'
done

# Too large for this machine's memory: that row says so, with both figures, the others run.
variant '\[16, 33\]' '[16, 4000000]' large.json
expect 1 'out_of_memory' run large.json -o large.json.out --variants cpu.naive --set limits.host_bytes=100000000 --set causal=false --quiet

# Ctrl-C keeps what was measured, and --resume does the rest.
cat >slow.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "slow", "question": "Does it stop?", "operator": "attention_prefill",
 "variants": ["cpu.flash"], "fixed": {"q_heads": 1, "kv_heads": 1, "head_dim": 64, "dtype": "f32", "causal": false},
 "axes": {"seq_len": [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31]},
 "measure": {"min_samples": 10, "max_samples": 1000000, "max_seconds": 0.4, "relative_ci": 1e-9, "cache": "warm"}}
JSON
"$program" run slow.json -o slow.out --quiet >slow.log 2>&1 &
child=$!
for _ in $(seq 6000); do  # until two rows are in the journal, after its header
  [ "$(wc -l 2>/dev/null <slow.outl)" -ge 3 ] 2>/dev/null && break
  sleep 0.1
done
kill -INT "$child"
wait "$child"
code=$?
[ "$code" = 130 ] || fail 'Ctrl-C' "exit code $code instead of 130: $(cat slow.log)"
measured=$(measured_rows slow.out)
if [ "$measured" -lt 1 ] || [ "$measured" -ge 16 ]; then fail 'Ctrl-C' "$measured of 16 rows in the file"; fi
expect 0 "resuming: $measured of 16 rows" run slow.json -o slow.out --resume
[ "$(measured_rows slow.out)" = 16 ] || fail 'resume' 'not 16 ok rows afterwards'

# No GPU, or a build without CUDA: the row says why, and the run still succeeds.
variant '"cpu.naive", "cpu.flash"' '"cpu.naive", "cuda.flash_sm80"' gpu.json
if [ ! -e /dev/nvidia0 ]; then
  expect 0 'unsupported' run gpu.json --set dtype=f16 --set head_dim=64
fi
if [[ $("$program" list variants) == *'no CUDA'* ]]; then
  export INFEROMETER_CUDA=off
  expect 0 'unsupported: this build has no CUDA: INFEROMETER_CUDA=off leaves it out' \
    run gpu.json --set dtype=f16 --set head_dim=64
  unset INFEROMETER_CUDA
fi

echo
echo "$failures failures"
[ "$failures" = 0 ]
