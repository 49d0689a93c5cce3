#!/usr/bin/env bash
# `inferometer quantize` as a user meets it: exit codes, messages, files. Usage: quantize_test.sh PROGRAM PROJECT_FOLDER
set -uo pipefail

program=$1
project=$2
python3 -c '' 2>/dev/null || { echo 'skipped: needs python3 to make a model'; exit 77; }
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"
command=(quantize)

python3 "$project/tests/cli/llama_checkpoint.py" small --shards 2 || exit 1
calibration=small/calibration.safetensors

# The main job, by each method and in each format.
for format in gptq gptq_v2 awq compressed-tensors; do
  expect 0 '14 layers, .* kB -> .* kB' small/model -o "rtn-$format" --method rtn --group-size 32 --format "$format"
done
for method in gptq awq; do
  expect 0 'of outputs' small/model -o "$method" --method "$method" --group-size 32 --calibration "$calibration"
done
expect 0 '^1 layer, ' small/model -o one --group-size 32 --layers '*.0.mlp.up_proj' --bits 8 --format gptq
expect 0 '\[14/14\] model.layers.1' small/model -o asymmetric --group-size -1 --asymmetric
for file in model.safetensors config.json tokenizer.json quantization_report.json; do
  [ -s "gptq/$file" ] || fail 'files' "gptq/$file is missing"
done
[ "$(find . -name '*.partial' -o -name '*.journal' | wc -l)" = 0 ] || fail 'files' 'something half-written is left'

# Wrong use, and input that cannot be quantised: a sentence, exit code 2, and no folder.
expect 2 'a model is missing'
expect 2 '-o DIR is missing' small/model
expect 2 'unknown method .gtpq., nearest is .gptq.' small/model -o bad --method gtpq
expect 2 'unknown format .awk., nearest is .awq.' small/model -o bad --format awk
expect 2 'bits' small/model -o bad --bits 3
expect 2 'group-size must be' small/model -o bad --group-size -2
expect 2 'needs --calibration FILE' small/model -o bad --method gptq
expect 2 'matches no linear layer' small/model -o bad --layers '*.x_proj'
expect 2 'multiple of the group size 48' small/model -o bad --group-size 48
expect 2 'awq holds 4 bits' small/model -o bad --bits 8 --format awq --group-size 32
expect 2 'nothing to resume' small/model -o bad --resume
expect 2 'absent.* cannot be opened' absent.safetensors -o bad
expect 2 'holds the model itself' small/model -o small/model
expect 2 'is there already' small/model -o gptq
: >empty.safetensors
expect 2 'empty.safetensors: at byte 0: the file has 0 bytes' empty.safetensors -o bad
head -c 20000 small/model/model-00001-of-00002.safetensors >cut.safetensors
expect 2 "cut.safetensors: tensor '.*': at byte 20000: the file lacks" cut.safetensors -o bad
[ ! -e bad ] || fail 'bad input' 'it left a folder'

# Killed at any time and gone on with, the result is the same to the byte.
python3 "$project/tests/cli/llama_checkpoint.py" middle --hidden 512 --intermediate 1024 --blocks 3 --tokens 64 || exit 1
arguments=(middle/model --method gptq --group-size 128 --calibration middle/calibration.safetensors --quiet)
expect 0 'layers' "${arguments[@]}" -o whole
"$program" quantize "${arguments[@]}" -o killed >/dev/null 2>&1 &
child=$!
lines() { { wc -l <killed/model.safetensors.journal; } 2>/dev/null || echo 0; }
until [ "$(lines)" -ge 3 ] || ! kill -0 "$child" 2>/dev/null; do sleep 0.02; done
kill -KILL "$child" 2>/dev/null
wait "$child" 2>/dev/null
if [ -e killed/model.safetensors ]; then
  echo 'the run ended before it could be killed'
else
  expect 2 '--resume goes on' "${arguments[@]}" -o killed
  expect 0 'layers' "${arguments[@]}" -o killed --resume
fi
cmp whole/model.safetensors killed/model.safetensors || fail 'resume' 'another file than without the interruption'

[ "$failures" = 0 ] && echo 'all as expected'
exit "$failures"
