#!/usr/bin/env bash
# Peers end to end, with a stand-in that computes on the processors: right, wrong, crashing, hanging, missing. And the
# example of docs/peers.md. Usage: peers_test.sh PROGRAM PROJECT_FOLDER. Skipped (77) without Python.
set -uo pipefail

program=$1
project=$2
python3 -c '' 2>/dev/null || exit 77
here=$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")
source "$here/expect.sh"
export INFEROMETER_ROOT=$work PEERS_FOLDER=$project/experiments/peers
mkdir -p experiments/peers
cp -- "$here/stand_in_peer.py" experiments/peers/

# manifest NAME ARGUMENT VARIANTS...: a peer with these variants of matmul.
manifest() {
  local name=$1 argument=$2 list=
  shift 2
  for variant in "$@"; do list+="${list:+, }\"cpu.peer_$variant\": \"$variant\""; done
  printf '{"schema": "inferometer.peer/1", "command": ["python3", "stand_in_peer.py"%s], "install": "pip install stand-in",
    "variants": {"matmul": {%s}, "an_operator_of_later": {"cpu.peer_later": "unknown here"}}}\n' "${argument:+, \"$argument\"}" "$list" >"experiments/peers/$name.json"
}
manifest stand_in '' right lies crashes hangs raises lacks_memory chats babbles mumbles
manifest garbled garbled garbles
manifest miscounted miscounted miscounts
manifest misnamed misnamed misnames
manifest unversioned unversioned unversioned
manifest gone missing gone
manifest dead dies dead
sed 's/"python3"/"no-such-program"/' experiments/peers/gone.json | sed 's/peer_gone/peer_nowhere/' >experiments/peers/nowhere.json

cat >matmul.json <<'JSON'
{"schema": "inferometer.sweep/1", "name": "peers", "question": "Who is right?", "operator": "matmul",
 "variants": ["cpu.peer_right"], "fixed": {"m": 3, "n": 4, "k": 16, "dtype": "f16"}, "axes": {},
 "measure": {"cache": "warm", "min_samples": 10, "max_samples": 20, "max_seconds": 0.2}}
JSON
expect 0 'cpu.peer_right' list variants
expect 0 'cpu.peer_right .* (ok|suspect)' run matmul.json -o right.json --quiet --device 3
grep -q '"stand_in": "1.2"' right.json || fail 'versions' 'the row lacks what the peer runs on'
grep -q '"ordinal": "3"' right.json || fail 'device' 'the peer was not told which GPU the run measures on'
grep -q '"repeated_after_timing": true' right.json || fail 'check' 'no second check'
expect 0 'unsupported: m must not be 5' run matmul.json -o five.json --quiet --set m=5
expect 0 '(ok|suspect)' run matmul.json -o inproc.json --quiet --in-process
expect 0 '(ok|suspect)' run matmul.json -o chats.json --quiet --variants cpu.peer_chats

# What goes wrong costs its own row: the one after it is measured.
one_fails() {
  expect 1 "cpu.peer_$1 .*$2" run matmul.json -o fails.json --quiet --variants "cpu.peer_$1,cpu.peer_right" "${@:3}"
  [ "$(measured_rows fails.json)" -gt 0 ] || fail "$1" 'the row after it was not measured'
}
one_fails lies 'incorrect: .*y'
one_fails raises 'error: peer stand_in: ValueError: the tile is too wide'
one_fails lacks_memory 'out_of_memory: .*no room for the tile'
one_fails crashes 'crashed: peer stand_in was killed by signal 11'
one_fails babbles 'crashed: peer stand_in must answer "launched", it said .*banana'
one_fails garbles 'error: peer garbled gave times that cannot be'
one_fails miscounts 'error: peer miscounted gave times that cannot be'
one_fails mumbles 'error: peer stand_in: "reason" must be a string or null, it said .*7'
one_fails dead 'error: peer dead ended with exit code 3'
# The row after it has as long, and starts Python anew.
one_fails hangs 'timed_out: no result within limits.row_seconds = 20 s' --set limits.row_seconds=20

# A greeting that is none is heard anew in each row, and which of two figures counts is ours to say.
expect 1 'cpu.peer_unversioned .*must begin with .*versions' run matmul.json -o twice.json --quiet --variants cpu.peer_unversioned --set m=[3,4]
[ "$(grep -c 'peer unversioned must begin with' twice.json)" = 2 ] || fail 'unversioned' 'a row took it for one that had begun'
expect 0 '(ok|suspect)' run matmul.json -o misnames.json --quiet --variants cpu.peer_misnames
grep -qE '"headline": "(isolated|amortized)"' misnames.json || fail 'misnames' 'the headline is the one that the peer named'

# A peer that is not here is no failure.
expect 0 'unsupported: peer gone is not here: Python has no module stand_in; to install: pip install stand-in' \
  run matmul.json -o gone.json --quiet --variants cpu.peer_gone
expect 0 'unsupported: peer nowhere is not here: no-such-program is not on PATH' run matmul.json -o nowhere.json --quiet --variants cpu.peer_nowhere
mkdir no_programs
: >no_programs/no-such-program
PATH=$work/no_programs:$PATH expect 0 'unsupported: peer nowhere is not here: no-such-program .* may not be executed' \
  run matmul.json -o nowhere.json --quiet --variants cpu.peer_nowhere
# Processes whose folder is that of the peers: adapters run there.
peers_left() { find /proc/[0-9]*/cwd -maxdepth 0 -lname "$work/experiments/peers" 2>/dev/null; }
for _ in $(seq 600); do [ -n "$(peers_left)" ] || break; sleep 0.1; done
[ -z "$(peers_left)" ] || fail 'processes' "a peer outlived its run: $(peers_left)"

# The example of the page, as it is printed there.
rm -- experiments/peers/*.json
awk '/^```python$/ {on = 1; next} /^```$/ {on = 0} on' "$project/docs/peers.md" >experiments/peers/plain_peer.py
awk '/^```json$/ {on = 1; next} /^```$/ {on = 0} on' "$project/docs/peers.md" >experiments/peers/plain.json
cp -- "$project/experiments/peers/peer.py" experiments/peers/
sed 's/cpu.peer_right/cpu.plain_python/' matmul.json >plain_sweep.json
expect 0 'cpu.plain_python .* (ok|suspect)' run plain_sweep.json -o example.json --quiet

# A manifest that is none is named at once.
echo '{"schema": "inferometer.peer/1"}' >experiments/peers/broken.json
expect 2 'broken.json is no manifest of a peer' list variants
sed 's/cpu.plain_python/Plain Python/' experiments/peers/plain.json >experiments/peers/broken.json
expect 2 "broken.json is no manifest of a peer.*'matmul/Plain Python': a name is" list variants
[ "$failures" = 0 ]
