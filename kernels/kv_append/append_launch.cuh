// From a problem to a launch; the variants differ in their slots alone.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/kv_append/append_args.hpp"
#include "kernels/kv_append/copy_tokens.cuh"
#include "kernels/kv_append/quantize_rows.cuh"
#include "reference/kv_append/problem.hpp"

namespace inferometer::append {

inline constexpr std::int64_t kInt32Max = std::numeric_limits<std::int32_t>::max();

// Why the kernels cannot do a problem of the right kind of cache.
inline std::optional<std::string> unsupported_by_kernels(const KvAppendProblem& p) {
  if (p.dtype != Dtype::f16 && p.dtype != Dtype::bf16)
    return "dtype must be f16 or bf16, got " + std::string(dtype_name(p.dtype));
  // The operator has checked that the product fits 64 bits. Room is left for the idle threads of the last block.
  const std::int64_t vectors = p.batch * p.new_tokens * p.kv_heads * (p.head_dim / kVectorElements);
  if (vectors > kInt32Max / 2)
    return "new keys must be at most " + std::to_string(kInt32Max / 2) + " vectors of " +
           std::to_string(kVectorElements) + " elements, whose numbers are 32-bit, got " + std::to_string(vectors);
  return std::nullopt;
}

inline AppendArgs make_args(const KvAppendProblem& p, const KvAppendTensors& t) {
  const auto divisor = [](std::int64_t value) { return FastDivide(static_cast<std::uint32_t>(value)); };
  const std::int64_t head_vectors = p.head_dim / kVectorElements;
  AppendArgs args{.k_new = t.k_new,
                  .v_new = t.v_new,
                  .seq_lens = t.seq_lens,
                  .block_table = t.block_table,
                  .k = t.k,
                  .v = t.v,
                  .kv_scales = t.kv_scales};
  args.tokens = static_cast<std::uint32_t>(p.batch * p.new_tokens);
  args.new_tokens = divisor(p.new_tokens);
  args.span = divisor(p.block_size == 0 ? p.capacity() : p.block_size);
  args.max_blocks = static_cast<std::int32_t>(p.max_blocks());
  args.kv_heads = divisor(p.kv_heads);
  args.token_vectors = divisor(p.kv_heads * head_vectors);
  args.head_vectors = static_cast<std::uint32_t>(head_vectors);
  // Lanes for so many vectors, rounded up to a power of two.
  const auto lanes_log2 = [](std::int64_t vectors) -> std::int32_t {
    return std::bit_width(static_cast<std::uint64_t>((vectors + kLaneVectors - 1) / kLaneVectors) - 1);
  };
  args.row_lanes_log2 = lanes_log2(head_vectors);
  args.group_lanes_log2 = lanes_log2(head_vectors / p.groups());
  args.groups = static_cast<std::uint32_t>(p.groups());
  args.row_bytes = (p.head_dim * p.kv_bits / 8 + 15) / 16 * 16;
  return args;
}

inline unsigned blocks_for(std::int64_t units, std::int64_t units_per_block) {
  return static_cast<unsigned>((units + units_per_block - 1) / units_per_block);
}

template <class T, class Codes, class Slots>
void launch_quantize(const AppendArgs& args, Stream stream) {
  const std::int64_t warp_tokens = 32 >> args.row_lanes_log2;
  const std::int64_t warps = (args.tokens + warp_tokens - 1) / warp_tokens * args.kv_heads.divisor();
  quantize_rows_kernel<T, Codes, Slots><<<blocks_for(warps, kQuantizeWarps), kQuantizeThreads, 0, stream>>>(args);
}

template <class Slots>
void launch_append(const KvAppendProblem& p, const KvAppendTensors& t, const Launch& launch) {
  const AppendArgs args = make_args(p, t);
  if (p.kv_bits == 16) {
    const std::int64_t vectors = std::int64_t{args.tokens} * args.token_vectors.divisor();
    copy_tokens_kernel<Slots><<<blocks_for(vectors, kCopyBlockVectors), kCopyThreads, 0, launch.stream>>>(args);
  } else {
    with_half_type(p.dtype, [&]<class T>() {
      if (p.kv_bits == 4) return launch_quantize<T, Int4Codes, Slots>(args, launch.stream);
      if (p.kv_format == "fp8_e4m3") return launch_quantize<T, E4m3Codes, Slots>(args, launch.stream);
      return launch_quantize<T, Int8Codes, Slots>(args, launch.stream);
    });
  }
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

}  // namespace inferometer::append
