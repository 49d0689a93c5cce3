// attention_decode / cuda.paged: split-KV flash decoding over a paged cache.
//
//   in   q            [batch, q_len, q_heads, head_dim]                   f16, bf16
//        k, v         [num_blocks, block_size, kv_heads, head_dim]        as q; or codes
//                     [num_blocks, kv_heads, block_size, row_bytes]       u8
//        kv_scales    [num_blocks, kv_heads, block_size, groups, 2]       f16, for codes
//        seq_lens     [batch]                                             i32
//        block_table  [batch, max_blocks]  block of each page, any order  i32
//   out  o            as q
//        lse          [batch, q_heads, q_len]                             f32, natural logarithm
//
// The cache is that of reference/kv_cache/layout.hpp, the kernel flash_decode.cuh. Entries past a sequence's end are
// not followed; with a window, entries are followed from up to 31 keys before it on. After: Kwon et al., "Efficient
// Memory Management for LLM Serving with PagedAttention", SOSP 2023.
#include "kernels/attention_decode/decode_launch.hpp"
#include "kernels/attention_decode/decode_plan.hpp"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const AttentionDecodeProblem& p) {
  if (p.block_size < 1) return "block_size must be at least 1, a paged cache, got " + std::to_string(p.block_size);
  if (const auto limit = decode::unsupported_by_kernel(p)) return limit;
  return decode::unsupported_by_gpu(p);
}

const RegisterVariant<AttentionDecode> registered{{
    .name = "cuda.paged",
    .summary =
        "split-KV flash decoding over a paged cache of 16, 8 or 4 bits: cp.async ring per warp, mma.sync, one launch",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &decode::decode_workspace_bytes,
    .prepare = &decode::prepare_decode,
    .run = &decode::launch_decode,
}};

}  // namespace
}  // namespace inferometer
