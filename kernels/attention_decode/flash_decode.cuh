// Split-KV flash decoding: one block computes one part of the keys for the query rows of one KV head.
//
//   S = Q K^T, P = softmax(S), O = P V   per KV head; rows are its `group` query heads times q_len new tokens
//
// Bound by reading K and V once, so everything serves the loads. Each warp streams its own tiles of kTileKeys keys
// through its own ring of shared-memory stages: no block barrier in the loop, and kStages - 1 tiles per warp always in
// flight. The products are taken transposed, S^T = K Q^T and O^T = V^T P^T: keys and dimensions fill the 16 rows of
// mma.m16n8k16, and the few query rows need only 8 columns, not 16 rows of padding.
// After: Dao et al., "Flash-Decoding for long-context inference", 2023; Milakov and Gimelshein 2018 (online softmax).
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/part_merge.cuh"
#include "kernels/attention_decode/partition.hpp"
#include "kernels/attention_decode/row_cursors.cuh"
#include "kernels/attention_decode/shape.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/common/swizzled_tile.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/exp2.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/movmatrix.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer::decode {

constexpr unsigned kAllLanes = 0xffffffffU;

// Scores of one tile, S^T [kTileKeys, 8 * kRowTiles], then their weights P^T: D operands of mma.
template <class Shape>
using Scores = float[Shape::kRowTiles][4];

// One warp's share: its query fragments, its running softmax and its output accumulators, in the layouts of mma.cuh.
template <class T, class Shape>
struct WarpTile {
  static constexpr int kDimTiles = Shape::kHeadDim / 16;

  std::uint32_t q[Shape::kRowTiles][kDimTiles][2];  // Q^T, B operand: query rows are its columns
  float o[Shape::kRowTiles][kDimTiles][4] = {};     // O^T relative to `state.max`
  SoftmaxState state[Shape::kRowTiles][2];          // of rows 2 (lane % 4) and + 1; sums over this lane's keys only

  // Straight from global memory: every lane needs 4 bytes here and there, once.
  __device__ void load_queries(const DecodeArgs& args, const Part& part) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t) {
      const int row = part.first_row + t * 8 + lane / 4;
      const auto* source =
          reinterpret_cast<const std::uint32_t*>(static_cast<const T*>(args.q) + query_offset<Shape>(args, part, row));
#pragma unroll
      for (int d = 0; d < kDimTiles; ++d)
#pragma unroll
        for (int i = 0; i < 2; ++i) q[t][d][i] = row < part.end_row ? __ldg(source + d * 8 + i * 4 + lane % 4) : 0;
    }
  }

  // S^T = K Q^T  [kTileKeys, rows]
  __device__ void multiply_keys(Scores<Shape>& s, std::uint32_t k_tile) const {
    const int lane = threadIdx.x % 32;
    const std::uint32_t k_chunk = k_tile + Shape::Tile::offset(lane % 16, lane / 16);
#pragma unroll
    for (int d = 0; d < kDimTiles; ++d) {
      std::uint32_t k[4];  // keys 0-7 and 8-15 of one half of the dimensions, then of the other
      ldmatrix_x4(k, Shape::Tile::step(k_chunk, d));
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t) mma_m16n8k16<T>(s[t], k, q[t][d][0], q[t][d][1]);
    }
  }

  // Keys past the sequence's end hold zeros and would score 0; a query must not see the keys of newer tokens.
  __device__ static void hide_keys(Scores<Shape>& s, const DecodeArgs& args, const Part& part, int first_key) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = part.first_row + t * 8 + lane % 4 * 2 + i % 2;
        const int visible = min(part.length, part.length - args.q_len + 1 + row / args.group);
        if (first_key + lane / 4 + i / 2 * 8 >= visible) s[t][i] = -std::numeric_limits<float>::infinity();
      }
  }

  // P = 2^((S - max) scale), and everything summed so far brought to the new maximum. P replaces S.
  __device__ void update_softmax(Scores<Shape>& s, float scale_log2) {
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        SoftmaxState& row = state[t][i];
        float max = fmaxf(row.max, fmaxf(s[t][i], s[t][i + 2]));
#pragma unroll
        for (int distance = 4; distance < 32; distance *= 2)  // over the lanes that hold other keys of this row
          max = fmaxf(max, __shfl_xor_sync(kAllLanes, max, distance));
        const float shift = max == -std::numeric_limits<float>::infinity() ? 0.0F : max;
        const float correction = exp2_approx((row.max - shift) * scale_log2);
        s[t][i] = exp2_approx((s[t][i] - shift) * scale_log2);
        s[t][i + 2] = exp2_approx((s[t][i + 2] - shift) * scale_log2);
        row.max = max;
        row.sum = row.sum * correction + s[t][i] + s[t][i + 2];
#pragma unroll
        for (int d = 0; d < kDimTiles; ++d) {
          o[t][d][i] *= correction;
          o[t][d][i + 2] *= correction;
        }
      }
  }

  // O^T += V^T P^T  [head_dim, rows]
  __device__ void multiply_values(const Scores<Shape>& p, std::uint32_t v_tile) {
    std::uint32_t p_columns[Shape::kRowTiles][2];  // B operand
#pragma unroll
    for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
      for (int i = 0; i < 2; ++i) p_columns[t][i] = movmatrix_trans(pack_pair<T>(p[t][2 * i], p[t][2 * i + 1]));

    const int lane = threadIdx.x % 32;
    const std::uint32_t v_chunk = v_tile + Shape::Tile::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int d = 0; d < kDimTiles; ++d) {
      std::uint32_t v[4];  // both halves of the dimensions of keys 0-7, then of keys 8-15
      ldmatrix_x4_trans(v, Shape::Tile::step(v_chunk, d));
#pragma unroll
      for (int t = 0; t < Shape::kRowTiles; ++t) mma_m16n8k16<T>(o[t][d], v, p_columns[t][0], p_columns[t][1]);
    }
  }
};

// Starts the copies of one tile's K and V into a stage. `row` is the cache row of key lane % kTileKeys of the tile;
// keys from `keys` on become zeros: whatever free slots hold, NaN too, never reaches the arithmetic.
template <class Shape, bool kWhole>
__device__ __forceinline__ void copy_tile(std::uint32_t stage, std::uint32_t row, int keys, const char* k,
                                          const char* v, std::uint32_t row_stride) {
  constexpr int kRowChunks = Shape::kHeadDim / 8;  // 16 bytes each
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int i = 0; i < kTileKeys * kRowChunks / 32; ++i) {
    const int key = (i * 32 + lane) / kRowChunks;
    const int chunk = (i * 32 + lane) % kRowChunks;
    const std::uint64_t source = std::uint64_t{__shfl_sync(kAllLanes, row, key)} * row_stride + chunk * 16;
    const std::uint32_t target = stage + Shape::Tile::offset(key, chunk);
    if constexpr (kWhole) {
      cp_async_16b(target, k + source);
      cp_async_16b(target + Shape::kTileBytes, v + source);
    } else {
      cp_async_16b_zfill(target, k + source, key < keys);
      cp_async_16b_zfill(target + Shape::kTileBytes, v + source, key < keys);
    }
  }
}

template <class Shape>
__device__ __forceinline__ void start_tile(std::uint32_t stage, std::uint32_t row, int keys, const char* k,
                                           const char* v, std::uint32_t row_stride) {
  if (keys >= kTileKeys) {
    copy_tile<Shape, true>(stage, row, keys, k, v, row_stride);
  } else {
    copy_tile<Shape, false>(stage, row, keys, k, v, row_stride);
  }
}

template <class T, class Shape, class Rows>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksPerSm) flash_decode_kernel(const DecodeArgs args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const Part part = part_of_block<Shape>(args, blockIdx.x);
  if (part.index >= part.count) return;

  const int warp = __shfl_sync(kAllLanes, threadIdx.x / 32, 0);  // tells the compiler that the whole warp agrees
  const int lane = threadIdx.x % 32;
  constexpr int kStep = Shape::kWarps * kTileKeys;  // warps take tiles in turn: a block reads one contiguous front
  const int first_key = part.first_key + warp * kTileKeys;
  int fetched = first_key;  // first key of the next tile to start
  const std::uint32_t ring = shared_address(shared) + warp * Shape::kStages * Shape::kStageBytes;
  const std::uint32_t row_stride = args.kv_heads * Shape::kHeadDim * sizeof(T);
  const char* k = static_cast<const char*>(args.k) + part.kv_head * (Shape::kHeadDim * sizeof(T));
  const char* v = static_cast<const char*>(args.v) + part.kv_head * (Shape::kHeadDim * sizeof(T));

  const int lane_key = lane % kTileKeys;
  Rows cursor(args, part.sequence, fetched + lane_key, kStep);
  std::uint32_t rows[Shape::kStages];  // block table entries of the first tiles, asked for together
#pragma unroll
  for (int s = 0; s < Shape::kStages; ++s) rows[s] = cursor.next(fetched + s * kStep + lane_key < part.end_key);
#pragma unroll
  for (int s = 0; s + 1 < Shape::kStages; ++s) {
    if (fetched < part.end_key)
      start_tile<Shape>(ring + s * Shape::kStageBytes, rows[s], part.end_key - fetched, k, v, row_stride);
    cp_async_commit();
    fetched += kStep;
  }
  std::uint32_t row = rows[Shape::kStages - 1];  // always one tile ahead of the copies

  WarpTile<T, Shape> tile;
  tile.load_queries(args, part);
  const float scale_log2 = args.scale * kLog2E;
  const int all_visible = part.length - args.q_len + 1;  // keys before this one are seen by every query
  int stage = 0;
  for (int key = first_key; key < part.end_key; key += kStep) {
    cp_async_wait<Shape::kStages - 2>();
    __syncwarp();  // the other lanes' copies of this tile are visible, and their reads of the stage refilled next are
                   // done
    if (fetched < part.end_key) {
      const int refill = stage == 0 ? Shape::kStages - 1 : stage - 1;
      start_tile<Shape>(ring + refill * Shape::kStageBytes, row, part.end_key - fetched, k, v, row_stride);
      fetched += kStep;
      row = cursor.next(fetched + lane_key < part.end_key);
    }
    cp_async_commit();  // empty past the last tile, so that the count of pending groups stays right

    Scores<Shape> s = {};
    tile.multiply_keys(s, ring + stage * Shape::kStageBytes);
    if (key + kTileKeys > all_visible) tile.hide_keys(s, args, part, key);
    tile.update_softmax(s, scale_log2);
    tile.multiply_values(s, ring + stage * Shape::kStageBytes + Shape::kTileBytes);
    stage = stage + 1 == Shape::kStages ? 0 : stage + 1;
  }

  finish_part<T, Shape>(args, part, tile, shared);
}

}  // namespace inferometer::decode
