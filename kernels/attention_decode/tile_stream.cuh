// One warp's stream of tiles from the cache into its ring of shared-memory stages.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/part.cuh"
#include "kernels/attention_decode/row_cursor.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/st_shared.cuh"

namespace inferometer::decode {

constexpr unsigned kAllLanes = 0xffffffffU;

template <class Shape>
class TileStream {
 public:
  // Warps take tiles in turn, so that a block reads one contiguous front. Asks for the block table's entries of the
  // first tiles, all together.
  __device__ TileStream(const DecodeArgs& args, const Part& part, unsigned char* shared, int warp)
      : args_(args),
        k_(static_cast<const char*>(args.k) + std::int64_t{part.kv_head} * args.head_bytes),
        v_(static_cast<const char*>(args.v) + std::int64_t{part.kv_head} * args.head_bytes),
        ring_(shared_address(shared) + warp * Shape::kStages * Shape::kStageBytes),
        next_key_(part.first_key + warp * Shape::kTileKeys),
        cursor_(args, part.sequence, part.kv_head, next_key_ + lane_key(), kStep) {
#pragma unroll
    for (int s = 0; s < Shape::kStages; ++s) tokens_[s] = cursor_.next();
  }

  // Starts the first kStages - 1 tiles, as far as they have keys before end_key.
  __device__ void start(int end_key) {
#pragma unroll
    for (int s = 0; s + 1 < Shape::kStages; ++s) {
      if (next_key_ < end_key) copy_tile(ring_ + s * Shape::kStageBytes, tokens_[s], end_key);
      cp_async_commit();
      next_key_ += kStep;
    }
  }

  // Waits for the next tile and starts the one that takes the place of the last. Returns its stage: K, V, scales.
  __device__ std::uint32_t next(int end_key) {
    cp_async_wait<Shape::kStages - 2>();
    __syncwarp();  // the other lanes' copies of this tile are visible, and their reads of the stage refilled next are
                   // done
    if (next_key_ < end_key) {
      const int refill = stage_ == 0 ? Shape::kStages - 1 : stage_ - 1;
      const RowCursor::Token token = tokens_[Shape::kStages - 1];
      tokens_[Shape::kStages - 1] = cursor_.next();  // always one tile ahead of the copies
      copy_tile(ring_ + refill * Shape::kStageBytes, token, end_key);
      next_key_ += kStep;
    }
    cp_async_commit();  // empty past the last tile, so that the count of pending groups stays right
    const std::uint32_t tile = ring_ + stage_ * Shape::kStageBytes;
    stage_ = stage_ + 1 == Shape::kStages ? 0 : stage_ + 1;
    return tile;
  }

  // Zeros in place of the values and scales from key `keys` of a tile on: free slots may hold NaN, which no weight of 0
  // would remove. Their scores are hidden by themselves.
  __device__ static void clear_from(std::uint32_t tile, int keys, int groups) {
    constexpr int kChunks = Shape::Tile::kChunks;
    const int lane = threadIdx.x % 32;
    for (int i = keys * kChunks + lane; i < Shape::kTileKeys * kChunks; i += 32)
      store_zeros_16b(tile + Shape::kTileBytes + Shape::Tile::offset(i / kChunks, i % kChunks));
    if constexpr (Shape::kScaled) {
      for (int i = keys * groups + lane; i < Shape::kTileKeys * groups; i += 32)
        store_zeros_4b(tile + Shape::kScalesAt + i * 4);
    }
    __syncwarp();
  }

  static constexpr int kStep = Shape::kWarps * Shape::kTileKeys;  // keys from a tile of this warp to its next

 private:
  __device__ static int lane_key() { return threadIdx.x % 32 % Shape::kTileKeys; }

  // `token` is key lane_key() of the tile.
  __device__ void copy_tile(std::uint32_t stage, RowCursor::Token token, int end_key) const {
    const std::uint32_t row = cursor_.row(token, next_key_ + lane_key() < end_key);
    if (next_key_ + Shape::kTileKeys <= end_key && args_.block_tokens.divisor() % Shape::kTileKeys == 0) {
      copy_neighbours(stage, __shfl_sync(kAllLanes, row, 0));
    } else {
      copy_rows(stage, row);
    }
  }

  // A whole tile in one block: its rows follow one another from `first` on.
  __device__ void copy_neighbours(std::uint32_t stage, std::uint32_t first) const {
    const int lane = threadIdx.x % 32;
    const int lane_row = lane / Shape::kRowChunks;
    const char* k = k_ + (std::int64_t{first} + lane_row) * args_.k_row_bytes + lane % Shape::kRowChunks * 16;
    const char* v = v_ + (std::int64_t{first} + lane_row) * args_.v_row_bytes + lane % Shape::kRowChunks * 16;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const std::uint32_t target = stage + chunk_offset(i * 32 + lane);
      if constexpr (32 % Shape::kRowChunks == 0) {  // so many rows further with each turn
        constexpr int kRows = 32 / Shape::kRowChunks;
        cp_async_16b(target, k + i * (kRows * args_.k_row_bytes));
        cp_async_16b(target + Shape::kTileBytes, v + i * (kRows * args_.v_row_bytes));
      } else {
        const int row = (i * 32 + lane) / Shape::kRowChunks - lane_row;
        const int chunk = (i * 32 + lane) % Shape::kRowChunks - lane % Shape::kRowChunks;
        cp_async_16b(target, k + row * args_.k_row_bytes + chunk * 16);
        cp_async_16b(target + Shape::kTileBytes, v + row * args_.v_row_bytes + chunk * 16);
      }
    }
    copy_scales(stage, first + lane_key());
  }

  // Rows anywhere, that of key lane_key() in each lane. Those of tokens that do not exist are row 0, and cleared later.
  __device__ void copy_rows(std::uint32_t stage, std::uint32_t row) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kCopies; ++i) {
      const int chunk = (i * 32 + lane) % Shape::kRowChunks;
      const std::int64_t source = __shfl_sync(kAllLanes, row, (i * 32 + lane) / Shape::kRowChunks);
      const std::uint32_t target = stage + chunk_offset(i * 32 + lane);
      cp_async_16b(target, k_ + source * args_.k_row_bytes + chunk * 16);
      cp_async_16b(target + Shape::kTileBytes, v_ + source * args_.v_row_bytes + chunk * 16);
    }
    copy_scales(stage, row);
  }

  __device__ void copy_scales(std::uint32_t stage, std::uint32_t row) const {
    const int lane = threadIdx.x % 32;
    if (!Shape::kScaled || lane >= Shape::kTileKeys) return;
    const char* source = static_cast<const char*>(args_.kv_scales) + std::int64_t{row} * (args_.groups * 4);
    const std::uint32_t target = stage + Shape::kScalesAt + lane * args_.groups * 4;
    if (args_.groups == 1) return cp_async_4b(target, source);
    if (args_.groups % 4 == 0) {
      for (int g = 0; g < args_.groups; g += 4) cp_async_16b(target + g * 4, source + g * 4);
    } else {
      for (int g = 0; g < args_.groups; ++g) cp_async_4b(target + g * 4, source + g * 4);
    }
  }

  static constexpr int kCopies = Shape::kTileKeys * Shape::kRowChunks / 32;  // of K, and of V, by each lane

  // Where the n-th chunk of a tile lies in K's part of a stage.
  __device__ static std::uint32_t chunk_offset(int n) {
    return Shape::Tile::offset(n / Shape::kRowChunks, n % Shape::kRowChunks);
  }

  const DecodeArgs& args_;
  const char* k_;
  const char* v_;
  std::uint32_t ring_;
  int next_key_;  // first key of the next tile to start
  int stage_ = 0;
  RowCursor cursor_;
  RowCursor::Token tokens_[Shape::kStages];
};

}  // namespace inferometer::decode
