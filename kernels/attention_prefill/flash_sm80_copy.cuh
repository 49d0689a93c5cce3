// attention_prefill / flash_sm80: copies of tiles of Q, K and V into shared memory.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm80_params.hpp"
#include "kernels/ptx/cp_async.cuh"

namespace inferometer {

// How threads share the copy of a tile: 16 bytes a thread and instruction, at a place that is fixed per thread.
template <class Config>
struct TileCopy {
  using T = typename Config::T;
  using Tile = typename Config::Tile;
  static constexpr int kChunksAtOnce = Tile::kWholeLines ? 8 : 4;  // 128 or 64 contiguous bytes of a row
  static constexpr int kRowsAtOnce = Config::kThreads / kChunksAtOnce;
  static_assert(kRowsAtOnce % 8 == 0);  // a step down keeps the swizzle's key

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kChunksAtOnce; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kChunksAtOnce * 8; }

  // Starts copying kRows rows of a matrix [rows, head_dim] whose element [row()][column()] is at `from`; rows and
  // columns past its end become zero.
  template <int kRows>
  __device__ __forceinline__ static void start(std::uint32_t tile, const T* from, std::int64_t stride, int rows,
                                               int head_dim) {
    static_assert(kRows % kRowsAtOnce == 0);
    const std::uint32_t dst = tile + Tile::offset(row(), column() / 8);
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsAtOnce) {
#pragma unroll
      for (int c = 0; c < Tile::kChunks; c += kChunksAtOnce)
        cp_async_16b_zfill(dst + r * Tile::kRowBytes + c * 16, from + c * 8,
                           row() + r < rows && column() + c * 8 < head_dim);
      from += kRowsAtOnce * stride;
    }
  }
};

// The rows of a tile of keys that this thread copies, wherever they lie in K and V.
template <class Config>
struct KeyRows {
  using T = typename Config::T;
  using Tile = typename Config::Tile;
  using Copy = TileCopy<Config>;
  static constexpr int kCount = Config::kTileKv / Copy::kRowsAtOnce;

  std::int64_t rows[kCount];  // of the sequence or, paged, of the pool; negative: past the last key

  // Keys first_key, first_key + 1, ... `blocks`: the sequence's row of the block table; null: contiguous. Entries past
  // the last key are not read.
  __device__ KeyRows(int first_key, int kv_len, const std::int32_t* blocks, const FastDivide& block_size) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int key = first_key + Copy::row() + i * Copy::kRowsAtOnce;
      if (key >= kv_len) {
        rows[i] = -1;
      } else if (blocks == nullptr) {
        rows[i] = key;
      } else {
        const std::uint32_t block = block_size.quotient(static_cast<std::uint32_t>(key));
        const std::uint32_t slot = block_size.remainder(static_cast<std::uint32_t>(key), block);
        rows[i] = std::int64_t{__ldg(blocks + block)} * block_size.divisor() + slot;
      }
    }
  }

  // Starts copying them from a matrix [.., head_dim] whose element [0][column()] is at `from`.
  __device__ __forceinline__ void start(std::uint32_t tile, const T* from, std::int64_t stride, int head_dim) const {
    const std::uint32_t dst = tile + Tile::offset(Copy::row(), Copy::column() / 8);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const bool exists = rows[i] >= 0;
      const T* row = from + (exists ? rows[i] * stride : 0);
#pragma unroll
      for (int c = 0; c < Tile::kChunks; c += Copy::kChunksAtOnce)
        cp_async_16b_zfill(dst + i * Copy::kRowsAtOnce * Tile::kRowBytes + c * 16, row + c * 8,
                           exists && Copy::column() + c * 8 < head_dim);
    }
  }
};

}  // namespace inferometer
