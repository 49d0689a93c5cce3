// The main loop of weight_only_wgmma_kernel: a warpgroup converts the codes of its band and multiplies them.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/matmul/weight_only_wgmma_slices.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// What a thread reads of its tile of 16 rows in a stage: its codes, and scales and zero points of its first row.
template <class T, class Shape>
class TileReader {
  using Codes = CodeForm<T, Shape::kBits>;
  using Exact = ExactCodes<T, Shape::kBits>;
  using Form = TileForm<Shape::kBits, Shape::kPlain>;
  static constexpr int kSteps = kSliceK / kStepK;

 public:
  using Fragments = std::uint32_t[kSteps][4];

  __device__ TileReader(const PackedShape& shape, int band) : form_(shape) {
    const int lane = threadIdx.x % 32;
    const int tile = Shape::kXBytes + (band * kBandTiles + threadIdx.x / 32 % kBandTiles) * form_.tile_bytes();
    places_[kCodes] = tile + lane * 16;
    places_[kScales] = tile + Form::kScalesAt + lane / 4 * sizeof(T);
    if (Shape::kPlain) pin_registers(places_);  // or they are computed anew for every slice; others lack the registers
  }

  // A = (code - zero) * scale, rounded to T, of the slice in the stage at shared address `stage`.
  __device__ __forceinline__ void convert(std::uint32_t stage, Fragments& fragments) const {
    std::uint32_t words[Shape::kBits];
    load_codes<Shape::kBits>(stage + places_[kCodes], words);
    // `kCount` steps from `kFirst` on, of the slice's group number `group`.
    const auto steps = [&]<int kFirst, int kCount>(int group) {
      const std::uint32_t at = stage + places_[kScales] + group * Form::kGroupBytes;
      const auto low = pair_of<T>(twice(load_shared_2b(at)));
      const auto high = pair_of<T>(twice(load_shared_2b(at + 8 * sizeof(T))));
      Exact exact(Codes::kMiddle, Codes::kMiddle);
      if (!form_.symmetric()) {
        const std::uint32_t zeros = stage + places_[kScales] - Form::kScalesAt + form_.zeros_at() + group * kTileRows -
                                    threadIdx.x % 32 / 4 * (sizeof(T) - 1);
        exact = Exact(load_shared_1b(zeros), load_shared_1b(zeros + 8));
      }
#pragma unroll
      for (int step = kFirst; step < kFirst + kCount; ++step) {
        std::uint32_t(&a)[4] = fragments[step];
        exact.convert(&words[step * Codes::kStepWords], a);
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = bits_of(__hmul2(pair_of<T>(a[i]), i % 2 == 0 ? low : high));
      }
    };
    if (!form_.two_groups()) {
      steps.template operator()<0, kSteps>(0);
    } else {
      steps.template operator()<0, kSteps / 2>(0);
      steps.template operator()<kSteps / 2, kSteps / 2>(1);
    }
  }

 private:
  enum : int { kCodes, kScales, kPlaces };

  Form form_;
  std::uint32_t places_[kPlaces];
};

// A warpgroup's sums of its band, D [64, tokens].
template <class Shape>
using BandSums = float[Shape::kTokens / 2];

// Starts sums += fragments X[:, slice]^T for the slice in the stage at shared address `stage`. The fragments stay as
// they are until the products are done.
template <class T, class Shape>
__device__ __forceinline__ void start_products(const typename TileReader<T, Shape>::Fragments& fragments,
                                               std::uint32_t stage, BandSums<Shape>& sums) {
  const std::uint64_t x = k_major_descriptor(stage);
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < kSliceK / kStepK; ++step)
    Wgmma<T, Shape::kTokens>::template run<BLayout::k_major>(sums, fragments[step],
                                                             advance_descriptor(x, step * kStepK * 2), true);
  wgmma_commit();
}

// sums += W[band, slices] X[:, slices]^T, of those of the tile's slices whose turn it is: one after the other.
template <class T, class Shape>
__device__ __forceinline__ void multiply_one_by_one(const TileReader<T, Shape>& reader, int slices,
                                                    MultipliedSlices<Shape>& turn, BandSums<Shape>& sums) {
  for (; turn.slice() < slices; turn.next()) {
    turn.wait_full();
    typename TileReader<T, Shape>::Fragments fragments;
    reader.convert(turn.stage(), fragments);
    start_products<T, Shape>(fragments, turn.stage(), sums);
    wgmma_wait<0>();
    turn.release();
  }
}

// Multiplies the current slice, and meanwhile converts the next, if there is one: says whether.
template <class T, class Shape>
__device__ __forceinline__ bool multiply_and_convert(const TileReader<T, Shape>& reader, int slices,
                                                     MultipliedSlices<Shape>& turn,
                                                     const typename TileReader<T, Shape>::Fragments& current,
                                                     typename TileReader<T, Shape>::Fragments& next,
                                                     BandSums<Shape>& sums) {
  start_products<T, Shape>(current, turn.stage(), sums);
  const MultipliedSlices<Shape> multiplied = turn;
  turn.next();
  const bool more = turn.slice() < slices;
  if (more) {
    turn.wait_full();
    reader.convert(turn.stage(), next);
  }
  wgmma_wait<0>();
  multiplied.release();
  return more;
}

// The same as multiply_one_by_one where sums leave registers for the fragments of two slices.
template <class T, class Shape>
__device__ __forceinline__ void multiply_ahead(const TileReader<T, Shape>& reader, int slices,
                                               MultipliedSlices<Shape>& turn, BandSums<Shape>& sums) {
  static_assert(Shape::kStages >= 2 * Shape::kWays, "the next slice is waited for before the current one is released");
  typename TileReader<T, Shape>::Fragments even;
  typename TileReader<T, Shape>::Fragments odd;
  if (turn.slice() >= slices) return;
  turn.wait_full();
  reader.convert(turn.stage(), even);
  while (multiply_and_convert<T, Shape>(reader, slices, turn, even, odd, sums) &&
         multiply_and_convert<T, Shape>(reader, slices, turn, odd, even, sums)) {
  }
}

template <class T, class Shape>
__device__ __forceinline__ void multiply_slices(const TileReader<T, Shape>& reader, int slices,
                                                MultipliedSlices<Shape>& turn, BandSums<Shape>& sums) {
  constexpr bool kAhead = Shape::kTokens != 128;  // four warpgroups with sums of 128 tokens lack the registers
  if constexpr (kAhead) {
    multiply_ahead<T, Shape>(reader, slices, turn, sums);
  } else {
    multiply_one_by_one<T, Shape>(reader, slices, turn, sums);
  }
  turn.next_tile(slices);
  pin_registers(sums);
}

#endif

}  // namespace inferometer
