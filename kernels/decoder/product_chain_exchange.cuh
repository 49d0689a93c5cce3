// How blocks of product_chain.cuh send vectors to each other (ChainExchange).
//
// An element says itself whether it has been sent, so loads and stores need no order among each other: relaxed ones do.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/decoder/product_chain.hpp"
#include "kernels/ptx/global_relaxed.cuh"

namespace inferometer::decoder {

#if __CUDA_ARCH__ >= 700

// A conversion's NaN is 0x7fff.
__device__ __forceinline__ void send(__half* to, float value) {
  store_relaxed_2b(to, __half_as_ushort(__float2half_rn(value)));
}

__device__ __forceinline__ void send(float* to, float value) {
  const std::uint32_t bits = __float_as_uint(value);
  store_relaxed_4b(to, bits == kUnsentFloat ? 0x7fffffffU : bits);
}

// Whether one of the two halves of a word has all bits set: the lower is found exactly, and the upper too unless the
// lower one is found as well.
__device__ __forceinline__ std::uint32_t unsent_halves(std::uint32_t word) {
  return (~word - 0x00010001U) & word & 0x80008000U;
}

struct SentHalves {
  __device__ static __forceinline__ bool all(const uint4& v) {
    return (unsent_halves(v.x) | unsent_halves(v.y) | unsent_halves(v.z) | unsent_halves(v.w)) == 0;
  }
};

struct SentFloats {
  __device__ static __forceinline__ bool all(const uint4& v) {
    return v.x != kUnsentFloat && v.y != kUnsentFloat && v.z != kUnsentFloat && v.w != kUnsentFloat;
  }
};

// Of what was there before the launch.
struct IsThere {
  __device__ static __forceinline__ bool all(const uint4&) { return true; }
};

// Vectors first, first + stride .. of `count` vectors of 16 bytes, v[i] for each, zeros past the end. All loads are
// under way together; those that came too early are repeated.
template <class Sent, int kVecs>
__device__ __forceinline__ void receive(const void* from, int first, int stride, int count, uint4 (&v)[kVecs]) {
  const auto* const vecs = static_cast<const uint4*>(from);
#pragma unroll
  for (int i = 0; i < kVecs; ++i) {
    v[i] = {};
    if (first + i * stride < count) v[i] = load_relaxed_16b(vecs + first + i * stride);
  }
  bool again = true;
  while (again) {
    again = false;
#pragma unroll
    for (int i = 0; i < kVecs; ++i)
      if (!Sent::all(v[i])) {
        v[i] = load_relaxed_16b(vecs + first + i * stride);
        again = true;
      }
  }
}

// All bits of an exchange set again, by all blocks: `thread` of `threads`.
__device__ __forceinline__ void unsend(const ChainExchange& exchange, int bytes, int thread, int threads) {
  for (int i = thread; i < bytes / 16; i += threads)
    reinterpret_cast<uint4*>(exchange.memory)[i] = {kUnsentFloat, kUnsentFloat, kUnsentFloat, kUnsentFloat};
}

#endif

}  // namespace inferometer::decoder
