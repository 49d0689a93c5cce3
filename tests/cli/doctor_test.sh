#!/usr/bin/env bash
# doctor as a user meets it, with or without a GPU. Usage: doctor_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
export INFEROMETER_ROOT=$project
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"

expect 2 'nearest is .--json' doctor --jsn
expect 2 'device' doctor --device -1

# A fault among the findings, should this machine have one, is exit code 1; it must be said.
"$program" doctor >text.out 2>text.err
code=$?
faults=$(grep -c '^  fault ' text.out)
if [ "$code" != "$((faults > 0))" ]; then fail 'doctor' "exit code $code with $faults faults: $(cat text.out text.err)"; fi
for heading in Machine 'The harness on [0-9]+ CPU threads' Findings 'repeat noise' 'clock resolution' 'empty launch' \
  'read ceiling' ' cold, .* warm, ' 'CPU cache clear' 'CPU rotation' 'CPU governor'; do
  grep -qE -- "$heading" text.out || fail 'doctor' "its text lacks '$heading': $(cat text.out)"
done
if [ ! -e /dev/nvidia0 ]; then
  grep -qE 'advice +GPU +.*; CUDA variants are unsupported' text.out || fail 'doctor' 'it does not say why there is no GPU'
fi

"$program" doctor --json >doctor.json 2>/dev/null
[ $? -le 1 ] || fail 'doctor --json' 'it failed'
grep -q '"schema": "inferometer.doctor/1"' doctor.json || fail 'doctor --json' "$(cat doctor.json)"
if command -v python3 >/dev/null; then
  python3 - doctor.json <<'PY' || fail 'doctor --json' 'it is no JSON with findings, each with a sentence'
import json, sys
report = json.load(open(sys.argv[1]))
assert report["findings"] and all(f["sentence"] and f["severity"] in ("good", "advice", "fault") for f in report["findings"])
assert report["cpu_measured"]["ceilings"]["read_bytes_per_s"] > 0
assert (report["gpu"] is None) == (report["gpu_measured"] is None) == bool(report["gpu_absent"])
PY
fi

echo
echo "$failures failures"
[ "$failures" = 0 ]
