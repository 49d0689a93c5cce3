// kv_append / cuda.paged: new keys and values into a paged cache, copied or quantised on the way.
//
//   in   k_new, v_new  [batch, new_tokens, kv_heads, head_dim]                    f16, bf16
//        seq_lens      [batch]  tokens stored already                             i32
//        block_table   [batch, max_blocks]  block of each page, any order         i32
//   out  k, v          kv_bits 16: [num_blocks, block_size, kv_heads, head_dim]   as k_new
//                      8, 4:       [num_blocks, kv_heads, block_size, row_bytes]  u8, codes
//        kv_scales     8, 4:       [num_blocks, kv_heads, block_size, groups, 2]  f16, K's and V's
//
// New token i of sequence b is token t = seq_lens[b] + i of its sequence, in slot t % block_size of block
// block_table[b][t / block_size]. The kernels are copy_tokens.cuh and quantize_rows.cuh.
// After: Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.
#include "kernels/kv_append/append_launch.cuh"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const KvAppendProblem& p) {
  if (p.block_size < 1) return "block_size must be at least 1, a paged cache, got " + std::to_string(p.block_size);
  return append::unsupported_by_kernels(p);
}

const RegisterVariant<KvAppend> registered{{
    .name = "cuda.paged",
    .summary = "16-byte loads, copied or quantised in registers, through the block table",
    .min_sm = 80,
    .unsupported = &unsupported,
    .run = &append::launch_append<append::PagedSlots>,
}};

}  // namespace
}  // namespace inferometer
