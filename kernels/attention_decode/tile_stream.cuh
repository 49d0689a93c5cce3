// One warp's stream of tiles from the cache into its ring of shared-memory stages.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/part.cuh"
#include "kernels/attention_decode/row_map.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/st_shared.cuh"

namespace inferometer::decode {

constexpr unsigned kAllLanes = 0xffffffffU;

// The entries of a block table travel with the tiles: each stage also takes those of the tile that will refill it, one
// a lane. So an entry is asked for as long before its use as a tile is, and no register waits for it.
template <class Shape>
class TileStream {
 public:
  // Warps take tiles in turn, so that a block reads one contiguous front. Asks for the entries of the first tiles.
  __device__ TileStream(const DecodeArgs& args, const Part& part, unsigned char* shared, int warp)
      : args_(args),
        rows_(args, part.sequence, part.kv_head),
        k_(static_cast<const char*>(args.k) + head_bytes(args, part)),
        v_(static_cast<const char*>(args.v) + head_bytes(args, part)),
        ring_(shared_address(shared) + warp * Shape::kStages * Shape::kStageBytes),
        next_key_(part.first_key + warp * Shape::kTileKeys),
        has_runs_(args.block_tokens.divisor() % kRunKeys == 0) {
    if (!rows_.is_paged()) return;
#pragma unroll 1
    for (int s = 0; s < Shape::kStages; ++s) ask_for_entry(stage(s), next_key_ + s * kStep);
    cp_async_commit();
  }

  // Starts the first kStages - 1 tiles, as far as they have keys before end_key.
  __device__ void start(int end_key) {
    if (rows_.is_paged()) cp_async_wait<0>();
#pragma unroll 1
    for (int s = 0; s + 1 < Shape::kStages; ++s) {
      copy_tile(stage(s), end_key);
      cp_async_commit();
    }
  }

  // Waits for the next tile and starts the one that takes the place of the last. Returns its stage: K, V, scales.
  __device__ std::uint32_t next(int end_key) {
    cp_async_wait<Shape::kStages - 2>();
    __syncwarp();  // the other lanes' copies of this tile are visible, and their reads of the stage refilled next are
                   // done
    copy_tile(stage(stage_), end_key);
    cp_async_commit();  // empty past the last tile, so that the count of pending groups stays right
    stage_ = stage_ + 1 == Shape::kStages ? 0 : stage_ + 1;
    return stage(stage_);
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
  __device__ std::uint32_t stage(int index) const { return ring_ + index * Shape::kStageBytes; }
  __device__ static std::uint32_t entry_of(std::uint32_t stage) {
    return stage + Shape::kEntriesAt + threadIdx.x % 32 * 4;
  }

  // For the tile that begins at first_key.
  __device__ void ask_for_entry(std::uint32_t stage, int first_key) const {
    const std::int32_t* entry = rows_.table_entry(first_key + lane_key());
    if (entry != nullptr) cp_async_4b(entry_of(stage), entry);
  }

  // The next tile, unless the part has no more.
  __device__ void copy_tile(std::uint32_t stage, int end_key) {
    if (next_key_ >= end_key) return;
    const int key = next_key_ + lane_key();
    const std::uint32_t block = rows_.is_paged() ? load_shared_4b(entry_of(stage)) : 0;
    const std::uint32_t row = key < end_key ? rows_.row(key, block) : 0;  // an entry past the end may be stale
    if (has_runs_ && next_key_ + Shape::kTileKeys <= end_key) {
      copy_runs(stage, row);
    } else {
      copy_rows(stage, row);
    }
    copy_scales(stage, row);
    if (rows_.is_paged()) ask_for_entry(stage, next_key_ + Shape::kStages * kStep);
    next_key_ += kStep;
  }

  // A whole tile, in runs of keys whose rows follow one another since they lie in one block.
  __device__ void copy_runs(std::uint32_t stage, std::uint32_t row) const {
#pragma unroll
    for (int run = 0; run < Shape::kTileKeys / kRunKeys; ++run) {
      const std::uint32_t first = __shfl_sync(kAllLanes, row, run * kRunKeys);
      const char* k = k_ + first * k_row_bytes();
      const char* v = v_ + first * v_row_bytes();
      const std::uint32_t target = stage + run * kRunKeys * Shape::Tile::kRowBytes;
#pragma unroll
      for (int i = 0; i < kRunKeys * Shape::kRowChunks / 32; ++i) copy_of_run(target, k, v, i);
    }
  }

  // The i-th 32 chunks of a run.
  __device__ void copy_of_run(std::uint32_t target, const char* k, const char* v, int i) const {
    const int lane = threadIdx.x % 32;
    if constexpr (32 % Shape::kRowChunks == 0) {  // so many whole rows: the lane's place in the next ones is the same
      constexpr int kRows = 32 / Shape::kRowChunks;
      const std::uint32_t chunk = Shape::Tile::rows_further(target + chunk_offset(lane), i * kRows);
      const std::int64_t lane_row = lane / Shape::kRowChunks;
      const int column = lane % Shape::kRowChunks * 16;
      cp_async_16b(chunk, k + (lane_row * k_row_bytes() + column) + i * (kRows * k_row_bytes()));
      cp_async_16b(chunk + Shape::kTileBytes, v + (lane_row * v_row_bytes() + column) + i * (kRows * v_row_bytes()));
    } else {
      const int row = (i * 32 + lane) / Shape::kRowChunks;
      const int column = (i * 32 + lane) % Shape::kRowChunks * 16;
      const std::uint32_t chunk = target + chunk_offset(i * 32 + lane);
      cp_async_16b(chunk, k + row * k_row_bytes() + column);
      cp_async_16b(chunk + Shape::kTileBytes, v + row * v_row_bytes() + column);
    }
  }

  // Rows anywhere, that of key lane_key() in each lane. Those of tokens that do not exist are row 0, and cleared later.
  __device__ void copy_rows(std::uint32_t stage, std::uint32_t row) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < Shape::kTileKeys * Shape::kRowChunks / 32; ++i) {
      const int column = (i * 32 + lane) % Shape::kRowChunks * 16;
      const std::uint32_t source = __shfl_sync(kAllLanes, row, (i * 32 + lane) / Shape::kRowChunks);
      const std::uint32_t target = stage + chunk_offset(i * 32 + lane);
      cp_async_16b(target, k_ + source * k_row_bytes() + column);
      cp_async_16b(target + Shape::kTileBytes, v_ + source * v_row_bytes() + column);
    }
  }

  __device__ void copy_scales(std::uint32_t stage, std::uint32_t row) const {
    const int lane = threadIdx.x % 32;
    if (!Shape::kScaled || lane >= Shape::kTileKeys) return;
    const int groups = Shape::kGrouped ? args_.groups : 1;
    const char* source = static_cast<const char*>(args_.kv_scales) + std::int64_t{row} * (groups * 4);
    const std::uint32_t target = stage + Shape::kScalesAt + lane * groups * 4;
    if constexpr (!Shape::kGrouped) {
      cp_async_4b(target, source);
    } else if (groups % 4 == 0) {
#pragma unroll 1
      for (int g = 0; g < groups; g += 4) cp_async_16b(target + g * 4, source + g * 4);
    } else {
#pragma unroll 1
      for (int g = 0; g < groups; ++g) cp_async_4b(target + g * 4, source + g * 4);
    }
  }

  // Keys that a block of the cache holds side by side wherever its size is a multiple of so many.
  static constexpr int kRunKeys = Shape::kRowChunks % 2 == 0 ? 16 : Shape::kTileKeys;

  // Rows of codes follow one another, so their distance is a constant; 16-bit rows may have strides.
  __device__ static std::int64_t head_bytes(const DecodeArgs& args, const Part& part) {
    return Shape::kScaled ? 0 : std::int64_t{part.kv_head} * args.head_bytes;
  }
  __device__ std::int64_t k_row_bytes() const { return Shape::kScaled ? Shape::kRowBytes : args_.k_row_bytes; }
  __device__ std::int64_t v_row_bytes() const { return Shape::kScaled ? Shape::kRowBytes : args_.v_row_bytes; }

  // Where the n-th chunk of a tile lies in K's part of a stage.
  __device__ static std::uint32_t chunk_offset(int n) {
    return Shape::Tile::offset(n / Shape::kRowChunks, n % Shape::kRowChunks);
  }

  const DecodeArgs& args_;
  RowMap rows_;
  const char* k_;
  const char* v_;
  std::uint32_t ring_;
  int next_key_;  // first key of the next tile to start
  bool has_runs_;
  int stage_ = Shape::kStages - 1;  // of the last tile returned; the first to be refilled
};

}  // namespace inferometer::decode
