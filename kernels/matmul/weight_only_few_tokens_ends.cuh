// What a thread of few_tokens_kernel does with a quad of sums: four neighbouring rows of W for one token, its warp's.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/common/swiglu.cuh"
#include "kernels/matmul/product_ends.cuh"
#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_terms.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#if __CUDA_ARCH__ >= 900

__device__ __forceinline__ void add_quad(float4& sum, float4 quad) {
  sum = {sum.x + quad.x, sum.y + quad.y, sum.z + quad.z, sum.w + quad.w};
}

// The offset of the codes makes NaN of an infinite x, (u + c) inf - c inf, and overflows in bf16 beyond 2^120.
__device__ __forceinline__ bool is_finite(float4 sum) { return isfinite(sum.x + sum.y + sum.z + sum.w); }

// While the first slices are under way a thread learns what its quad will be added to or multiplied with: that of token
// `token` and rows 4 lane .. 4 lane + 3 of the block's tiles; of blocks that share rows, `part` of 1 or 2 has every
// parts-th lane's. Then it ends with the quad when it is summed up. With kTogether all lanes of a warp call, and `has`
// says whether this one has a quad to store; else only those that have. `row`: of W, the first of the quad.
template <class T, class Shape, class End>
class FewTokensEnd;

template <class T, class Shape>
class FewTokensEnd<T, Shape, RoundedEnd> {
 public:
  static constexpr bool kTogether = false;

  __device__ explicit FewTokensEnd(const RoundedEnd&) {}
  __device__ void expect(const FewTokensArgs<T>&, int /*token*/, int /*first_tile*/, int /*part*/) {}

  __device__ __forceinline__ void store(const FewTokensArgs<T>& args, int token, int row, float4 sum,
                                        bool /*has*/) const {
    T* y = args.y + static_cast<std::int64_t>(token) * args.n + row;
    const int count = min(args.n - row, 4);
    if (args.n % 4 == 0) {  // row is a multiple of 4 too
      if (count > 0) *reinterpret_cast<uint2*>(y) = make_uint2(pack_pair<T>(sum.x, sum.y), pack_pair<T>(sum.z, sum.w));
    } else {
      if (count > 0) y[0] = from_float<T>(sum.x);
      if (count > 1) y[1] = from_float<T>(sum.y);
      if (count > 2) y[2] = from_float<T>(sum.z);
      if (count > 3) y[3] = from_float<T>(sum.w);
    }
    if (!is_finite(sum)) mend<T, Shape::kBits>(args.weights, args.x + token * args.weights.shape.k, row, y, count);
  }
};

// Lanes l and l + 2, l / 2 even, have four rows of G and the rows of U that they go with.
template <class T, class Shape>
class FewTokensEnd<T, Shape, GatedEnd> {
 public:
  static constexpr bool kTogether = true;

  __device__ explicit FewTokensEnd(const GatedEnd& end) : norm_(end.norm) {}

  __device__ void expect(const FewTokensArgs<T>& args, int token, int /*first_tile*/, int /*part*/) {
    if (token < args.m) factor_ = late_norm_factor(norm_, token, blockIdx.x == 0);
  }

  __device__ __forceinline__ void store(const FewTokensArgs<T>& args, int token, int row, float4 g, bool has) const {
    const float4 u = {__shfl_down_sync(~0U, g.x, 2), __shfl_down_sync(~0U, g.y, 2), __shfl_down_sync(~0U, g.z, 2),
                      __shfl_down_sync(~0U, g.w, 2)};
    if (!has || row >= args.n || row % kTileRows >= kGatedRows) return;
    T* y = args.y + static_cast<std::int64_t>(token) * (args.n / 2) + row / kTileRows * kGatedRows + row % kGatedRows;
    const float f = factor_;
    *reinterpret_cast<uint2*>(y) = make_uint2(swiglu_pair({g.x * f, g.y * f}, {u.x * f, u.y * f}),
                                              swiglu_pair({g.z * f, g.w * f}, {u.z * f, u.w * f}));
    if (is_finite(g) && is_finite(u)) return;
    const T* const x = args.x + token * args.weights.shape.k;
#pragma unroll 1
    for (int i = 0; i < 4; ++i)
      y[i] = from_float<T>(swiglu(sum_of_terms<T, Shape::kBits>(args.weights, x, row + i) * f,
                                  sum_of_terms<T, Shape::kBits>(args.weights, x, row + kGatedRows + i) * f));
  }

 private:
  const LateNorm& norm_;
  float factor_ = 1;
};

template <class T, class Shape>
class FewTokensEnd<T, Shape, ResidualEnd> {
 public:
  static constexpr bool kTogether = true;

  __device__ explicit FewTokensEnd(const ResidualEnd& end) : to_(end) {}

  __device__ __forceinline__ void expect(const FewTokensArgs<T>& args, int token, int first_tile, int part) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int row = first_tile * kTileRows + lane * 4;
    if (token >= args.m || lane * 4 >= args.tiles * kTileRows || lane % args.parts != part || row >= args.n) return;
    h_ = *reinterpret_cast<const float4*>(to_.h + static_cast<std::int64_t>(token) * args.n + row);
    gain_ = *reinterpret_cast<const uint2*>(to_.gain + row);
    scale_ = to_.scale[token];
  }

  __device__ __forceinline__ void store(const FewTokensArgs<T>& args, int token, int row, float4 sum, bool has) const {
    float squares = 0;
    if (has && row < args.n) {
      if (!is_finite(sum)) sum = sum_again(args, token, row);
      add_quad(sum, h_);
      const std::int64_t at = static_cast<std::int64_t>(token) * args.n + row;
      *reinterpret_cast<float4*>(to_.h + at) = sum;
      float scale = scale_;
      pin(scale);  // or it is multiplied where it was loaded, and the first slice waits for that
      scale *= kLateHeadroom;
      const float2 low = unpack_pair<__half>(gain_.x);
      const float2 high = unpack_pair<__half>(gain_.y);
      *reinterpret_cast<uint2*>(to_.x + at) =
          make_uint2(pack_pair<__half>(sum.x * low.x * scale, sum.y * low.y * scale),
                     pack_pair<__half>(sum.z * high.x * scale, sum.w * high.y * scale));
      squares = sum.x * sum.x + sum.y * sum.y + sum.z * sum.z + sum.w * sum.w;
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(~0U, squares, distance);
    if (threadIdx.x % 32 == 0 && token < args.m) to_.squares[token * to_.parts + blockIdx.x] = squares;
  }

 private:
  __device__ static float4 sum_again(const FewTokensArgs<T>& args, int token, int row) {
    float4 sum{};
#pragma unroll 1
    for (int i = 0; i < 4; ++i)
      sum = {sum.y, sum.z, sum.w,
             sum_of_terms<T, Shape::kBits>(args.weights, args.x + token * args.weights.shape.k, row + i)};
    return sum;
  }

  const ResidualEnd& to_;
  float4 h_{};
  uint2 gain_{};
  float scale_ = 0;
};

#endif

}  // namespace inferometer
