// kv_bits 16: new keys and values are copied as they are, all heads of a token together.
//
// Bound by memory: every byte is read once and written once. A thread moves kCopyUnroll vectors of K and as many of V.
// All their loads are under way before it looks up where they go, and both lookups of one kind before those of the
// next: first the lengths of the sequences, then the block numbers.
#pragma once

#include <cstdint>

#include "kernels/kv_append/append_args.hpp"
#include "kernels/kv_append/slots.cuh"

namespace inferometer::append {

inline constexpr int kCopyThreads = 128;
inline constexpr int kCopyUnroll = 2;
inline constexpr std::uint32_t kCopyBlockVectors = kCopyThreads * kCopyUnroll;  // of K, and of V

template <class Slots>
__global__ void __launch_bounds__(kCopyThreads) copy_tokens_kernel(const __grid_constant__ AppendArgs args) {
  const std::uint32_t vectors = args.tokens * args.token_vectors.divisor();
  const std::uint32_t first = blockIdx.x * kCopyBlockVectors + threadIdx.x;
  const auto vector_of = [&](int u) { return first + u * kCopyThreads; };

  uint4 k[kCopyUnroll];
  uint4 v[kCopyUnroll];
#pragma unroll
  for (int u = 0; u < kCopyUnroll; ++u) {
    if (vector_of(u) >= vectors) continue;
    k[u] = __ldg(static_cast<const uint4*>(args.k_new) + vector_of(u));
    v[u] = __ldg(static_cast<const uint4*>(args.v_new) + vector_of(u));
  }
  std::int64_t to[kCopyUnroll] = {};
  if (first < vectors) {  // a second vector past the end is looked up as the last one, and not stored
    Position positions[kCopyUnroll];
    std::uint32_t columns[kCopyUnroll];  // within the token
#pragma unroll
    for (int u = 0; u < kCopyUnroll; ++u) {
      const std::uint32_t vector = min(vector_of(u), vectors - 1);
      const std::uint32_t token = args.token_vectors.quotient(vector);
      columns[u] = args.token_vectors.remainder(vector, token);
      positions[u] = position_of(args, token);
    }
#pragma unroll
    for (int u = 0; u < kCopyUnroll; ++u) {
      const Slot slot = Slots::at(args, positions[u]);
      to[u] = (std::int64_t{slot.area} * args.span.divisor() + slot.index) * args.token_vectors.divisor() + columns[u];
    }
  }
#pragma unroll
  for (int u = 0; u < kCopyUnroll; ++u) {
    if (vector_of(u) >= vectors) continue;
    static_cast<uint4*>(args.k)[to[u]] = k[u];
    static_cast<uint4*>(args.v)[to[u]] = v[u];
  }
}

}  // namespace inferometer::append
