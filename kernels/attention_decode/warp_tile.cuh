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
  static constexpr int kSteps = Shape::kSteps;
  static constexpr int kKeyTiles = Shape::kKeyTiles;
  static constexpr int kLoads = (kSteps + Format::kStepsPerLoad - 1) / Format::kStepsPerLoad;

 public:
  float o[Shape::kRowTiles][kSteps][4] = {};  // O^T relative to `state.max`, in units of `unit()`
  SoftmaxState state[Shape::kRowTiles][2];    // of rows 2 (lane % 4) and + 1; sums over this lane's keys only

  // What o is to be multiplied by.
  __device__ float unit() const { return unit_; }

  // Straight from global memory: every lane needs a few elements here and there, once.
  __device__ void load_queries(const DecodeArgs& args, const Part& part) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t) {
      const int row = part.first_row + t * 8 + lane / 4;
      const bool exists = row < part.end_row;
      const auto* source = static_cast<const std::uint16_t*>(args.q) +
                           (exists ? query_offset<Shape>(args, part, query_row(args, row)) : 0);
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int2 dims = Format::query_dims(step, half, lane % 4);
          if constexpr (Format::kAdjacentDims) {
            q_[t][step][half] = exists ? __ldg(reinterpret_cast<const std::uint32_t*>(source + dims.x)) : 0;
          } else {
            const std::uint32_t first = exists ? __ldg(source + dims.x) : 0;
            const std::uint32_t second = exists ? __ldg(source + dims.y) : 0;
            q_[t][step][half] = second << 16 | first;
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
      const std::uint32_t scales = tile + Shape::kScalesAt + (n * 16 + lane / 4) * args.groups * 4;
      if constexpr (!Shape::kScaled) {  // two chains of mma
        multiply_slices<(kSteps + 1) / 2>(keys, [&](int, const auto& product) { add(s[n], product); });
      } else if (args.groups == 1) {
        multiply_slices<kSteps>(keys, [&](int, const auto& product) { add_scaled(s[n], product, scales, 8 * 4); });
      } else {
        multiply_slices<2>(keys, [&](int slice, const auto& product) {
          add_scaled(s[n], product, scales + (slice >> args.group_shift) * 4, 8 * args.groups * 4);
        });
      }
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
    const std::uint32_t chunk = tile + Shape::kTileBytes + Shape::Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int n = 0; n < kKeyTiles; ++n) {
      const std::uint32_t keys = chunk + n * 16 * Shape::Tile::kRowBytes;
      const std::uint32_t scales = tile + Shape::kScalesAt + (n * 16 + lane / 4) * args.groups * 4;
      std::uint32_t columns[Shape::kRowTiles][2];
      if constexpr (!Shape::kScaled) {
        weight_columns(columns, p[n], 1.0F, 1.0F);
        accumulate_slices(columns, keys, [](int) {});
      } else if (args.groups == 1) {
        scaled_columns(columns, p[n], scales, 8 * 4);
        accumulate_slices(columns, keys, [](int) {});
      } else {
        accumulate_slices(columns, keys, [&](int slice) {
          scaled_columns(columns, p[n], scales + (slice >> args.group_shift) * 4, 8 * args.groups * 4);
        });
      }
    }
  }

 private:
  // Index 0: K, 1: V, of the group at `address`.
  __device__ static float scale_at(std::uint32_t address, int index) {
    const std::uint32_t pair = load_shared_4b(address);
    return __half2float(__ushort_as_half(static_cast<unsigned short>(index == 0 ? pair : pair >> 16)));
  }

  static __device__ void add(float (&s)[Shape::kRowTiles][4], const float (&product)[Shape::kRowTiles][4]) {
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][i] += product[t][i];
  }

  // `scales`: of key lane / 4; those of the key 8 further come `high_at` bytes later.
  static __device__ void add_scaled(float (&s)[Shape::kRowTiles][4], const float (&product)[Shape::kRowTiles][4],
                                    std::uint32_t scales, int high_at) {
    const float low = scale_at(scales, 0);
    const float high = scale_at(scales + high_at, 0);
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[t][i] += product[t][i] * (i < 2 ? low : high);
  }

  // Products of 16 keys with Q, a slice of kSliceSteps steps at a time; then use(slice, product). Two steps are 32
  // dimensions, the smallest group.
  template <int kSliceSteps, class Use>
  __device__ void multiply_slices(std::uint32_t keys, Use use) const {
    float product[Shape::kRowTiles][4];
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
          if (step % kSliceSteps == 0) product[t][0] = product[t][1] = product[t][2] = product[t][3] = 0;
          mma_m16n8k16<T>(product[t], a, q_[t][step][0], q_[t][step][1]);
        }
        if ((step + 1) % kSliceSteps == 0 || step + 1 == kSteps) use(step / kSliceSteps, product);
      });
    }
  }

  // O^T of the slices; begin(slice) may change the columns before each.
  template <class Begin>
  __device__ void accumulate_slices(const std::uint32_t (&columns)[Shape::kRowTiles][2], std::uint32_t keys,
                                    Begin begin) {
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
        for (int t = 0; t < Shape::kRowTiles; ++t) mma_m16n8k16<T>(o[t][step], a, columns[t][0], columns[t][1]);
      });
    }
  }

  // The scales of V go to the weights.
  __device__ void scaled_columns(std::uint32_t (&columns)[Shape::kRowTiles][2], const float (&p)[Shape::kRowTiles][4],
                                 std::uint32_t scales, int high_at) {
    const float low = scale_at(scales, 1);
    const float high = scale_at(scales + high_at, 1);
    if constexpr (kHasUnit) {
      float top = 0;
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t)
        top = fmaxf(top, fmaxf(fmaxf(p[t][0], p[t][1]) * low, fmaxf(p[t][2], p[t][3]) * high));
      if (__any_sync(kAllLanes, top > unit_)) raise_unit(top);
    }
    weight_columns(columns, p, low * per_unit_, high * per_unit_);
  }

  // P^T times the keys' factors as B operand: `low` for key lane / 4, `high` for the one 8 further.
  __device__ static void weight_columns(std::uint32_t (&columns)[Shape::kRowTiles][2],
                                        const float (&p)[Shape::kRowTiles][4], float low, float high) {
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

  std::uint32_t q_[Shape::kRowTiles][kSteps][2];  // Q^T, B operand: query rows are its columns
  float unit_ = kHasUnit ? 0x1p-100F : 1.0F;      // at first below any weight times scale
  float per_unit_ = kHasUnit ? 0x1p100F : 1.0F;
};

}  // namespace inferometer::decode
