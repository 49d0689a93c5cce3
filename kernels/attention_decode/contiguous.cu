// attention_decode / cuda.contiguous: split-KV flash decoding over a contiguous cache.
//
//   in   q          [batch, q_len, q_heads, head_dim]      f16, bf16
//        k, v       [batch, context, kv_heads, head_dim]   as q; or codes [batch, kv_heads, context, row_bytes] u8
//        kv_scales  [batch, kv_heads, context, groups, 2]  f16, for codes
//        seq_lens   [batch]                                i32
//   out  o          as q
//        lse        [batch, q_heads, q_len]                f32, natural logarithm
//
// The cache is that of reference/kv_cache/layout.hpp, the kernel flash_decode.cuh.
#include "kernels/attention_decode/decode_launch.hpp"
#include "kernels/attention_decode/decode_plan.hpp"

namespace inferometer {
namespace {

std::optional<std::string> unsupported(const AttentionDecodeProblem& p) {
  if (p.block_size != 0) return "block_size must be 0, a contiguous cache, got " + std::to_string(p.block_size);
  if (const auto limit = decode::unsupported_by_kernel(p)) return limit;
  return decode::unsupported_by_gpu(p);
}

const RegisterVariant<AttentionDecode> registered{{
    .name = "cuda.contiguous",
    .summary = "split-KV flash decoding over a contiguous cache of 16, 8 or 4 bits: cp.async ring per warp, mma.sync, "
               "one launch",
    .min_sm = 80,
    .unsupported = &unsupported,
    .workspace_bytes = &decode::decode_workspace_bytes,
    .prepare = &decode::prepare_decode,
    .run = &decode::launch_decode,
}};

}  // namespace
}  // namespace inferometer
