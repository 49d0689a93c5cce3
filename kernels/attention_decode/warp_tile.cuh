// The arithmetic of one warp on one tile of keys: S^T = K Q^T, softmax, O^T += V^T P^T.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <limits>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/kv_format.cuh"
#include "kernels/attention_decode/part.cuh"
#include "kernels/attention_decode/tile_stream.cuh"
#include "kernels/common/const_for.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/exp2.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"

namespace inferometer::decode {

constexpr float kLog2E = 1.44269504F;
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// Scores of one tile, S^T [kTileKeys, 8 * kRowTiles], then their weights P^T: D operands of mma.
template <class Shape>
using Scores = float[Shape::kKeyTiles][Shape::kRowTiles][4];

// One warp's share: its query fragments, its running softmax and its output accumulators, in the layouts of mma.cuh.
template <class T, class Shape>
class WarpTile {
  using Format = typename Shape::Format;
  using Codes = typename Format::template Codes<T>;
  static constexpr int kSteps = Shape::kSteps;
  static constexpr int kKeyTiles = Shape::kKeyTiles;
  static constexpr int kSliceSteps = Shape::kGrouped ? 2 : kSteps;  // 32 dimensions, the smallest group, or all
  static constexpr int kLoads = (kSteps + Format::kStepsPerLoad - 1) / Format::kStepsPerLoad;

 public:
  float o[Shape::kRowTiles][kSteps][4] = {};  // O^T relative to `state.max`, in units of `unit()`
  SoftmaxState state[Shape::kRowTiles][2];    // of rows 2 (lane % 4) and + 1; sums over this lane's keys only

  // What o is to be multiplied by: [..][0] and [1] for half 0, [2] and [3] for half 1.
  __device__ float unit(int half) const {
    return unit_ * (half == 0 ? Codes::kUnit : Codes::kUnit / Codes::kOddFactor);
  }

  // Straight from global memory: every lane needs a few elements here and there, once.
  __device__ void load_queries(const DecodeArgs& args, const Part& part) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t) {
      // Columns past the last row repeat it; they are computed and not stored.
      const int row = min(part.first_row + t * 8 + lane / 4, part.end_row - 1);
      const auto* source =
          static_cast<const std::uint16_t*>(args.q) + query_offset<Shape>(args, part, query_row(args, row));
#pragma unroll
      for (int step = 0; step < kSteps; step += Format::kQuerySteps) {
        std::uint32_t b[Format::kQuerySteps][2];
        Format::query_operand(b, source, step, lane % 4);
#pragma unroll
        for (int s = 0; s < Format::kQuerySteps; ++s)
#pragma unroll
          for (int half = 0; half < 2; ++half) q_[t][step + s][half] = b[s][half];
      }
    }
  }

  // As load_queries: pair(row, g) is elements 8 g + 2 (lane % 4) and the next of a row of the block.
  template <class PairOf>
  __device__ void take_queries(PairOf pair) {
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          q_[t][step][half] = pair(t * 8 + static_cast<int>(threadIdx.x) % 32 / 4, step * 2 + half);
  }

  // What the bias of raw codes adds to a slice of a score, taken off as its product begins.
  __device__ void measure_bias() {
    if constexpr (Codes::kBiased) {
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t) {
        Chains chains;
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          float(&product)[4] = chains[step % 2];
          if (step % kSliceSteps < 2) product[0] = product[1] = product[2] = product[3] = 0;
          multiply_bias(product, step, t);
          if ((step + 1) % kSliceSteps != 0) continue;
#pragma unroll
          for (int i = 0; i < 2; ++i) minus_bias_[t][step / kSliceSteps][i] = sum_of(chains, i);
        }
      }
    }
  }

  // S^T = K Q^T  [kTileKeys, rows]
  __device__ void multiply_keys(Scores<Shape>& s, std::uint32_t tile, const DecodeArgs& args) const {
    const int lane = threadIdx.x % 32;
    const std::uint32_t chunk = tile + Shape::Tile::offset(lane % 16, lane / 16);
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      const std::uint32_t keys = chunk + n * 16 * Shape::Tile::kRowBytes;
      multiply_slices(s[n], keys, [&](int slice) { return scales_of(tile, args, n * 16 + lane / 4, slice, 0); });
    }
  }

  // s becomes c tanh(s / c); `cap` is c over the softmax scale, which comes after the product.
  __device__ static void cap_scores(Scores<Shape>& s, float cap) {
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) s[n][t][i] = cap * tanhf(s[n][t][i] / cap);
  }

  // A query sees neither the keys of newer tokens, nor what lies past the sequence's end, nor keys before its window.
  __device__ static void hide_keys(Scores<Shape>& s, const DecodeArgs& args, const Part& part, int first_key) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int row = part.first_row + t * 8 + lane % 4 * 2 + i;
        const int end = min(part.length, part.length - args.q_len + 1 + query_row(args, row).token);
        const int begin = args.window_left < 0 ? 0 : end - 1 - args.window_left;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int key = first_key + n * 16 + lane / 4 + j * 8;
            if (key < begin || key >= end) s[n][t][i + 2 * j] = kNoScore;
          }
      }
  }

  // P = 2^((S - max) scale), which replaces S. Any max near the largest score serves, so it moves, and with it all that
  // was summed, only when a score passes it by `slack` (then weights would reach 2^8): one vote a tile in place of a
  // reduction over the warp.
  __device__ void update_softmax(Scores<Shape>& s, float scale_log2, float slack) {
    bool passes = false;
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n)
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
        for (int i = 0; i < 4; ++i) passes |= s[n][t][i] > state[t][i % 2].max + slack;
    if (__any_sync(kAllLanes, passes)) raise_max(s, scale_log2);
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        SoftmaxState& row = state[t][i % 2];
        const float max = row.max == kNoScore ? 0.0F : row.max;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) {
          s[n][t][i] = exp2_approx((s[n][t][i] - max) * scale_log2);
          row.sum += s[n][t][i];
        }
      }
  }

  // O^T += V^T P^T  [head_dim, rows]
  __device__ void multiply_values(const Scores<Shape>& p, std::uint32_t tile, const DecodeArgs& args) {
    const int lane = threadIdx.x % 32;
    const std::uint32_t values = tile + Shape::kTileBytes + Shape::Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
    Columns columns;
    if constexpr (!Shape::kGrouped) {
      ScalePair scales[kKeyTiles];
      float top = 0;
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        scales[n] = scales_of(tile, args, n * 16 + lane / 4, 0, 1);
        top = fmaxf(top, top_weight(p[n], scales[n]));
      }
      fit_unit(top);
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        weight_columns(columns, p[n], scales[n]);
        accumulate_slices(columns, values + n * 16 * Shape::Tile::kRowBytes, [](int) {});
      }
    } else {
#pragma unroll
      for (int n = 0; n < kKeyTiles; ++n) {
        ScalePair scales[kSteps / 2];
        float top = 0;
#pragma unroll
        for (int slice = 0; slice < kSteps / 2; ++slice) {
          scales[slice] = scales_of(tile, args, n * 16 + lane / 4, slice, 1);
          top = fmaxf(top, top_weight(p[n], scales[slice]));
        }
        fit_unit(top);
        accumulate_slices(columns, values + n * 16 * Shape::Tile::kRowBytes,
                          [&](int slice) { weight_columns(columns, p[n], scales[slice]); });
      }
    }
  }

 private:
  // Products that one step adds to: two chains of mma, of even and of odd steps.
  using Chains = float[2][4];

  // Weights of 16 keys, B operand of V^T P^T.
  using Columns = std::uint32_t[Shape::kRowTiles][2];

  // Of key lane / 4, and of the one 8 further.
  struct ScalePair {
    float low;
    float high;
  };

  // Index 0: K, 1: V. Of a slice of 32 dimensions, or of the whole row.
  __device__ static ScalePair scales_of(std::uint32_t tile, const DecodeArgs& args, int key, int slice, int index) {
    if constexpr (!Shape::kScaled) return {1.0F, 1.0F};
    const int groups = Shape::kGrouped ? args.groups : 1;
    const int group = Shape::kGrouped ? slice >> args.group_shift : 0;
    const std::uint32_t address = tile + Shape::kScalesAt + (key * groups + group) * 4;
    return {scale_at(address, index), scale_at(address + 8 * groups * 4, index)};
  }
  __device__ static float scale_at(std::uint32_t address, int index) {
    const std::uint32_t pair = load_shared_4b(address);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(index == 0 ? pair : pair >> 16)));
  }

  __device__ static float sum_of(const Chains& chains, int i) {
    return fmaf(chains[1][i], 1.0F / Codes::kOddFactor, chains[0][i]);
  }

  // Takes off what the bias of a step's codes adds to `product`.
  __device__ void multiply_bias(float (&product)[4], int step, int t) const {
    if constexpr (Codes::kBiased) {
      constexpr std::uint32_t kEven = Codes::kMinusBias[0];
      constexpr std::uint32_t kOdd = Codes::kMinusBias[1];
      const std::uint32_t bias = step % 2 == 0 ? kEven : kOdd;
      mma_m16n8k16<T>(product, {bias, bias, bias, bias}, q_[t][step][0], q_[t][step][1]);
    }
  }

  // s += K Q^T of 16 keys, a slice at a time, each times its scale_of(slice).
  template <class ScaleOf>
  __device__ void multiply_slices(float (&s)[Shape::kRowTiles][4], std::uint32_t keys, ScaleOf scale_of) const {
    Chains chains[Shape::kRowTiles];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      std::uint32_t k[4];
      ldmatrix_x4(k, Shape::Tile::step(keys, load));
      const_for<Format::kStepsPerLoad>([&]<int kStep>() {
        const int step = load * Format::kStepsPerLoad + kStep;
        if (step >= kSteps) return;
        std::uint32_t a[4];
        Format::template key_operand<T, kStep>(a, k);
#pragma unroll
        for (int t = 0; t < Shape::kRowTiles; ++t) {
          float(&product)[4] = chains[t][step % 2];
          if (step % kSliceSteps < 2) start_chain(product, step, t);
          mma_m16n8k16<T>(product, a, q_[t][step][0], q_[t][step][1]);
        }
        if ((step + 1) % kSliceSteps != 0 && step + 1 != kSteps) return;
        const ScalePair scale = scale_of(step / kSliceSteps);
#pragma unroll
        for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            s[t][i] += sum_of(chains[t], i) * ((i < 2 ? scale.low : scale.high) * Codes::kUnit);
      });
    }
  }

  // At step 0 or 1 of a slice: one of the two chains begins with what takes off the bias of both.
  __device__ void start_chain(float (&product)[4], int step, int t) const {
    const bool even = step % 2 == 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) product[i] = Codes::kBiased && even ? minus_bias_[t][step / kSliceSteps][i % 2] : 0;
  }

  // O^T of the slices; begin(slice) may change the columns before each.
  template <class Begin>
  __device__ void accumulate_slices(const Columns& columns, std::uint32_t keys, Begin begin) {
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      std::uint32_t v[4];
      ldmatrix_x4_trans(v, Shape::Tile::step(keys, load));
      const_for<Format::kStepsPerLoad>([&]<int kStep>() {
        const int step = load * Format::kStepsPerLoad + kStep;
        if (step >= kSteps) return;
        if (step % 2 == 0) begin(step / 2);
        std::uint32_t a[4];
        Format::template value_operand<T, kStep>(a, v);
#pragma unroll
        for (int t = 0; t < Shape::kRowTiles; ++t) {
          if constexpr (Codes::kBiased) {
            constexpr std::uint32_t kEven = Codes::kMinusBias[0];
            constexpr std::uint32_t kOdd = Codes::kMinusBias[1];
            mma_m16n8k16<T>(o[t][step], {kEven, kOdd, kEven, kOdd}, columns[t][0], columns[t][1]);
          }
          mma_m16n8k16<T>(o[t][step], a, columns[t][0], columns[t][1]);
        }
      });
    }
  }

  // The scales of V go to the weights: the greatest product of 16 keys.
  __device__ static float top_weight(const float (&p)[Shape::kRowTiles][4], ScalePair scale) {
    float top = 0;
    if constexpr (kHasUnit) {
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t)
        top = fmaxf(top, fmaxf(fmaxf(p[t][0], p[t][1]) * scale.low, fmaxf(p[t][2], p[t][3]) * scale.high));
    }
    return top;
  }

  // P^T times the scales as B operand.
  __device__ void weight_columns(Columns& columns, const float (&p)[Shape::kRowTiles][4], ScalePair scale) const {
    const float low = scale.low * per_unit_;
    const float high = scale.high * per_unit_;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t) {
      columns[t][0] = movmatrix_trans(pack_pair<T>(p[t][0] * low, p[t][1] * low));
      columns[t][1] = movmatrix_trans(pack_pair<T>(p[t][2] * high, p[t][3] * high));
    }
  }

  __device__ void raise_max(const Scores<Shape>& s, float scale_log2) {
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        SoftmaxState& row = state[t][i];
        float max = row.max;
#pragma unroll
        for (int n = 0; n < kKeyTiles; ++n) max = fmaxf(max, fmaxf(s[n][t][i], s[n][t][i + 2]));
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2)  // over the lanes that hold other keys of this row
          max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, distance));
        const float correction = rescale_factor(row.max, max, scale_log2);
        row = {max, row.sum * correction};
#pragma unroll
        for (int step = 0; step < kSteps; ++step) {
          o[t][step][i] *= correction;
          o[t][step][i + 2] *= correction;
        }
      }
  }

  // Makes the unit a power of two that no weight times scale so far exceeds.
  __device__ void fit_unit(float top) {
    if constexpr (kHasUnit) {
      if (__any_sync(kAllLanes, top > unit_)) raise_unit(top);
    }
  }
  __device__ void raise_unit(float top) {
#pragma unroll
    for (int distance = 1; distance < 32; distance *= 2) top = fmaxf(top, __shfl_xor_sync(kAllLanes, top, distance));
    const float unit = __uint_as_float((__float_as_uint(top) + 0x7fffffU) & 0x7f800000U);
    const float per_unit = __uint_as_float(0x7f000000U - __float_as_uint(unit));  // 1 / unit
    const float ratio = unit_ * per_unit;
    unit_ = unit;
    per_unit_ = per_unit;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int i = 0; i < 4; ++i) o[t][step][i] *= ratio;
  }

  // Weights times scales far below 1 would lose bits as f16 subnormals, so they are taken in units of the largest so
  // far. bf16 has the range of f32.
  static constexpr bool kHasUnit = Shape::kScaled && HalfTraits<T>::kDtype == Dtype::f16;

  std::uint32_t q_[Shape::kRowTiles][kSteps][2];                 // Q^T, B operand: query rows are its columns
  float minus_bias_[Shape::kRowTiles][kSteps / kSliceSteps][2];  // of rows 2 (lane % 4) and + 1
  float unit_ = kHasUnit ? 0x1p-100F : 1.0F;                     // at first below any weight times scale
  float per_unit_ = kHasUnit ? 0x1p100F : 1.0F;
};

}  // namespace inferometer::decode
