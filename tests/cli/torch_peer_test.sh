#!/usr/bin/env bash
# PyTorch as a peer, on the processors: what its adapter makes of our tensors passes our judge.
# Usage: torch_peer_test.sh PROGRAM PROJECT_FOLDER. Skipped (77) without PyTorch.
set -uo pipefail

program=$1
project=$2
python3 -c 'import torch; torch._weight_int4pack_mm_for_cpu' 2>/dev/null || exit 77
source "$(dirname -- "$(realpath -- "${BASH_SOURCE[0]}")")/expect.sh"
export INFEROMETER_ROOT=$work
mkdir -p experiments/peers
cp -- "$project"/experiments/peers/*.py experiments/peers/
cat >experiments/peers/torch.json <<'JSON'
{"schema": "inferometer.peer/1", "command": ["python3", "torch_peer.py", "cpu"], "install": "pip install torch", "variants": {
  "attention_prefill": {"cpu.torch_sdpa_math": "matmuls and a softmax", "cpu.torch_sdpa_flash": "tiles"},
  "attention_decode": {"cpu.torch_sdpa_math": "matmuls and a softmax", "cpu.torch_sdpa_flash": "tiles"},
  "matmul": {"cpu.torch_matmul": "16 bits", "cpu.torch_int_mm": "8 bits", "cpu.torch_int4pack_mm": "4 bits"}}}
JSON
measure='"measure": {"cache": "warm", "min_samples": 10, "max_samples": 20, "max_seconds": 0.1}'
cat >matmul.json <<JSON
{"schema": "inferometer.sweep/1", "name": "matmul", "question": "Who is right?", "operator": "matmul", "fixed": {"n": 64, "k": 384},
 "variants": ["cpu.torch_*"], "axes": {"dtype": ["f16", "bf16"], "m": [1, 33]},
 "zip": [{"bits": [16, 8, 4, 4, 4, 4], "activation_bits": [16, 8, 16, 16, 16, 16], "group_size": [0, 0, 128, 32, 64, 128],
          "symmetric": [true, true, true, true, false, false]}], $measure}
JSON
cat >attention.json <<JSON
{"schema": "inferometer.sweep/1", "name": "attention", "question": "Who is right?", "operator": "attention_prefill",
 "variants": ["cpu.torch_*"], "fixed": {"q_heads": 4, "kv_heads": 2, "head_dim": 64, "seq_len": 100},
 "axes": {"dtype": ["f16", "bf16", "f32"], "causal": [false, true]}, $measure}
JSON
cat >decode.json <<JSON
{"schema": "inferometer.sweep/1", "name": "decode", "question": "Who is right?", "operator": "attention_decode",
 "variants": ["cpu.torch_*"], "fixed": {"q_heads": 4, "kv_heads": 2, "head_dim": 64, "batch": 3},
 "axes": {"dtype": ["f16", "bf16", "f32"], "context": [1, 100]}, $measure}
JSON

# right CONFIG ROWS: so many rows are right, and the others unsupported. A busy machine may leave a time too uncertain.
right() {
  local said passed failed
  said=$(timeout 1200 "$program" run "$1.json" -o "$1.out.json" --quiet 2>&1)
  passed=$(grep -cE '"status": "(ok|suspect)"' "$1.out.json")
  failed=$(grep '"status": "' "$1.out.json" | grep -cvE '"(ok|suspect|unsupported)"')
  [ "$passed, $failed" = "$2, 0" ] || fail "$1" "$passed rows are right instead of $2, $failed failed; it said: $said"
}
right matmul 24  # each of the six formats fits one variant, in two dtypes at two m
right attention 12
right decode 12
grep -q '"torch": "' matmul.out.json || fail 'versions' 'the rows lack the version of PyTorch'

# Nibbles in the other order are weights in the other order: the judge sees it.
sed -i 's/(packed & 15, packed >> 4)/(packed >> 4, packed \& 15)/' experiments/peers/torch_matmul.py
expect 1 'cpu.torch_int4pack_mm .*incorrect' run matmul.json -o swapped.json --quiet --variants cpu.torch_int4pack_mm \
  --filter 'bits == 4 and m == 1'
[ "$failures" = 0 ]
