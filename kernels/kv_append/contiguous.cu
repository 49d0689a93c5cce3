// kv_append / cuda.contiguous: new keys and values into a contiguous cache, copied or quantised on the way.
//
//   in   k_new, v_new  [batch, new_tokens, kv_heads, head_dim]                f16, bf16
//        seq_lens      [batch]  tokens stored already                         i32
//   out  k, v          kv_bits 16: [batch, capacity, kv_heads, head_dim]      as k_new
//                      8, 4:       [batch, kv_heads, capacity, row_bytes]     u8, codes
//        kv_scales     8, 4:       [batch, kv_heads, capacity, groups, 2]     f16, K's and V's
//
// New token i of sequence b is token seq_lens[b] + i of its sequence. The kernels are copy_tokens.cuh and
// quantize_rows.cuh.
#include "kernels/kv_append/append_launch.cuh"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const KvAppendProblem& p) {
  if (p.block_size != 0) return "block_size must be 0, a contiguous cache, got " + std::to_string(p.block_size);
  return append::unsupported_by_kernels(p);
}

const RegisterVariant<KvAppend> registered{{
    .name = "cuda.contiguous",
    .summary = "16-byte loads, copied or quantised in registers, into a contiguous cache",
    .min_sm = 80,
    .unsupported = &unsupported,
    .run = &append::launch_append<append::ContiguousSlots>,
}};

}  // namespace
}  // namespace inferometer
