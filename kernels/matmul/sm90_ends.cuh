// What a warpgroup of sm90_matmul_kernel does with its sums: rounds them to Y, or ends as product_ends.hpp says.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/common/swiglu.cuh"
#include "kernels/matmul/product_ends.cuh"
#include "kernels/matmul/sm90_args.hpp"
#include "kernels/matmul/sm90_store.cuh"
#include "kernels/matmul/sm90_tile.hpp"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/st_shared.cuh"

namespace inferometer {

// What becomes of f32 sums: elements of Y of type T. Another output scales first; it is told the row of A and the first
// of the two rows of B that a pair belongs to.
template <class T>
struct RoundedOutput {
  __device__ std::uint32_t pack(std::uint32_t /*a*/, std::uint32_t /*b*/, float first, float second) const {
    return pack_pair<T>(first, second);
  }
};

// GatedEnd, of f16, has a norm only in tiles that have_late_norm(); ResidualEnd is for those alone.

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where this thread's first sums of 8 columns stand: rows a and a + 8 of A, rows b and b + 1 of B.
struct SumsPlace {
  std::uint32_t a;
  std::uint32_t b;

  __device__ SumsPlace(Sm90Origin tile, std::uint32_t group)
      : a(tile.a + threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4), b(tile.b + group * 8 + threadIdx.x % 4 * 2) {}
};

template <class Tile, class Output>
class Sm90End {
 public:
  using Box = BoxStore<Tile>;
  static constexpr bool kHasBox = true;

  __device__ Sm90End(const Sm90Args&, const Output& output, std::uint32_t /*smem*/) : output_(output) {}

  // Before the barrier that begins the block's work.
  __device__ void begin() const {}
  // Before the sums of a tile: of them `count` groups of 8 columns from the `first` are this thread's to put.
  __device__ void expect(Sm90Origin, std::uint32_t /*first*/, std::uint32_t /*count*/) const {}

  // Group number `group`, at the box's place `at`.
  template <class Sum>
  __device__ __forceinline__ void put(const Box& box, Sm90Origin tile, std::uint32_t group, std::uint32_t at,
                                      const Sum* s) const {
    const SumsPlace place(tile, group);
    box.put(at, output_.pack(place.a, place.b, s[0], s[1]), output_.pack(place.a + 8, place.b, s[2], s[3]));
  }

 private:
  const Output& output_;
};

template <class Tile>
class Sm90End<Tile, GatedEnd> {
  static constexpr Sm90Tile kTile = Tile::kTile;

 public:
  using Box = BoxStore<Tile, true>;
  static constexpr bool kHasBox = true;

  __device__ Sm90End(const Sm90Args& args, const GatedEnd& output, std::uint32_t smem)
      : args_(args), norm_(output.norm), factors_(smem + static_cast<std::uint32_t>(kTile.factors_at())) {}

  // While the first copies are under way.
  __device__ void begin() const {
    if constexpr (kTile.has_late_norm()) {
      constexpr int kWarps = kTile.groups * kSm90Warpgroup / 32;
      for (int token = static_cast<int>(threadIdx.x) / 32; token < kTile.tile_b; token += kWarps) {
        const float factor = token < args_.m ? late_norm_factor(norm_, token, blockIdx.x == 0) : 1.0F;
        if (threadIdx.x % 32 == 0) store_shared_4b(factors_ + 4 * token, factor);
      }
    }
  }
  __device__ void expect(Sm90Origin, std::uint32_t /*first*/, std::uint32_t /*count*/) const {}

  // With X as A a group of a gate's columns takes along the one behind it, of its partner's.
  __device__ __forceinline__ void put(const Box& box, Sm90Origin, std::uint32_t group, std::uint32_t at,
                                      const float* s) const {
    if constexpr (kTile.has_late_norm()) {
      const float2 f = load_shared_two_floats(factors_ + (group * 8 + threadIdx.x % 4 * 2) * 4);
      box.put_gated(at, swiglu_pair({s[0] * f.x, s[1] * f.y}, {s[2] * f.x, s[3] * f.y}));
    } else if constexpr (kTile.weights_are_a) {
      box.put_gated(at, swiglu_pair({s[0], s[1]}, {s[2], s[3]}));
    } else if (at % 2 == 0) {
      box.put(at / 2, swiglu_pair({s[0], s[1]}, {s[4], s[5]}), swiglu_pair({s[2], s[3]}, {s[6], s[7]}));
    }
  }

 private:
  const Sm90Args& args_;
  const LateNorm& norm_;
  std::uint32_t factors_;  // shared address
};

template <class Tile>
class Sm90End<Tile, ResidualEnd> {
  static constexpr Sm90Tile kTile = Tile::kTile;
  static constexpr std::uint32_t kGroups = kTile.sum_groups();
  static_assert(kTile.has_late_norm() && kGroups <= 4, "all that is added to waits in registers");

 public:
  using Box = BoxStore<Tile>;
  static constexpr bool kHasBox = false;

  __device__ Sm90End(const Sm90Args& args, const ResidualEnd& output, std::uint32_t /*smem*/)
      : args_(args), to_(output) {}

  __device__ void begin() const {}

  // Loads what the sums will be added to, so that it is there when they are.
  __device__ __forceinline__ void expect(Sm90Origin tile, std::uint32_t first, std::uint32_t count) {
    first_ = first;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const std::uint32_t feature = SumsPlace(tile, 0).a + i * 8;
      if (feature < args_.n) gain_[i] = to_.gain[feature];
    }
#pragma unroll
    for (std::uint32_t g = 0; g < kGroups; ++g) {
      const SumsPlace place(tile, first + g);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool is_there = g < count && exists(place, i);
        h_[g][i] = is_there ? to_.h[index(place, i)] : 0.0F;
        if (i < 2) scale_[g][i] = is_there ? to_.scale[place.b + i] : 0.0F;
      }
    }
  }

  __device__ __forceinline__ void put(const Box&, Sm90Origin tile, std::uint32_t group, std::uint32_t /*at*/,
                                      const float* s) const {
    const SumsPlace place(tile, group);
    float squares[2] = {};
#pragma unroll
    for (std::uint32_t g = 0; g < kGroups; ++g) {  // registers are not indexed
      if (first_ + g != group) continue;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!exists(place, i)) continue;
        const float h = h_[g][i] + s[i];
        to_.h[index(place, i)] = h;
        to_.x[index(place, i)] = from_float<__half>(h * to_float(gain_[i / 2]) * (scale_[g][i % 2] * kLateHeadroom));
        squares[i % 2] += h * h;
      }
    }
#pragma unroll
    for (int distance = 4; distance < 32; distance *= 2)  // the warp's 16 rows of A
#pragma unroll
      for (float& sum : squares) sum += __shfl_xor_sync(~0U, sum, distance);
    const std::uint32_t part = (tile.a + threadIdx.x / 32 * 16) / 16;
    if (threadIdx.x % 32 >= 4 || static_cast<int>(part) >= to_.parts) return;
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (place.b + i < args_.m) to_.squares[std::int64_t{place.b + i} * to_.parts + part] = squares[i];
  }

 private:
  // Of sums number i of 8 columns.
  __device__ bool exists(const SumsPlace& place, int i) const {
    return place.a + i / 2 * 8 < args_.n && place.b + i % 2 < args_.m;
  }
  __device__ std::int64_t index(const SumsPlace& place, int i) const {
    return std::int64_t{place.b + i % 2} * args_.n + place.a + i / 2 * 8;
  }

  const Sm90Args& args_;
  const ResidualEnd& to_;
  std::uint32_t first_ = 0;
  // As they were loaded: arithmetic with them would wait for them before the main loop.
  __half gain_[2];
  float scale_[kGroups][2];
  float h_[kGroups][4];
};

#endif

}  // namespace inferometer
