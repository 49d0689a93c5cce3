// attention_decode / cuda.paged: split-KV flash decoding over a paged cache.
//
//   in   q            [batch, q_len, q_heads, head_dim]                 f16, bf16
//        k, v         [num_blocks, block_size, kv_heads, head_dim]      as q
//        seq_lens     [batch]                                           i32
//        block_table  [batch, max_blocks]  block of each page, any order i32
//   out  o            as q
//        lse          [batch, q_heads, q_len]                           f32, natural logarithm
//
// Token t of sequence b is row block_table[b][t / block_size] * block_size + t % block_size of the cache. The kernel is
// flash_decode.cuh. After: Kwon et al., "Efficient Memory Management for LLM Serving with PagedAttention", SOSP 2023.
#include "kernels/attention_decode/decode_launch.cuh"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const AttentionDecodeProblem& p) {
  if (p.block_size < 1) return "block_size must be at least 1, a paged cache, got " + std::to_string(p.block_size);
  return decode::unsupported_by_kernel(p);
}

const RegisterVariant<AttentionDecode> registered{{
    .name = "cuda.paged",
    .summary = "split-KV flash decoding over a paged cache: cp.async ring per warp, mma.sync, one launch",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &decode::decode_workspace_bytes,
    .prepare = &decode::prepare_plan,
    .run = &decode::launch_decode<BlockTableRows>,
}};

}  // namespace
}  // namespace inferometer
