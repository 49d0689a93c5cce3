// Packed weights of 4 bits (matmul/packing.hpp) in product_chain.cuh: symmetric, a group no shorter than a slice. A
// group of rows is kTiles tiles; a tile of gate_up is 8 features.
//
// Tiles are A of mma.m16n8k16, the token is every column of B. Codes are 1024 + u and 1024 + 16 u as they come out of a
// word; sums of x in a slice take what is too much out again.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/product_chain.hpp"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"

namespace inferometer::decoder {

struct ChainInt4 {
  static constexpr int kTiles = 2;
  static constexpr int kSlices = 32;  // of a stage: 34 KB
  static constexpr int kStageK = kSlices * kSliceK;
  static constexpr int kWarps = 16;     // that multiply
  static constexpr int kCopyWarps = 4;  // a copy is of 1 KB: one warp cannot start enough of them
  static constexpr int kUnit = kTileRows;
  static constexpr int kGroupRows = kTiles * kTileRows;
  static constexpr int kUpRow = kTileRows / 2;
  static constexpr int kTileBytes = PackedShape{16, 64, 4, 128, true}.tile_bytes();
  static constexpr int kScalesAt = PackedShape{16, 64, 4, 128, true}.scales_at();
  static constexpr int kSliceBytes = kTiles * kTileBytes;
  static constexpr int kStageBytes = (kSlices * kSliceBytes + 127) / 128 * 128;
  static constexpr int kXBytesOfStage = kStageK * 2;
  static constexpr int kWarpSlices = kSlices / kWarps;
  static constexpr int kCopySlices = kSlices / kCopyWarps;
  static_assert(kSlices % kWarps == 0 && kSlices % kCopyWarps == 0 && kCopySlices <= 32);

  // x, and then for each slice what its sums start from.
  static constexpr INFEROMETER_HOST_DEVICE int x_bytes(int k) { return k * 2 + k / kSliceK * 8; }
  static constexpr INFEROMETER_HOST_DEVICE int gate_row(int feature) {
    return feature / kUpRow * kTileRows + feature % kUpRow;
  }

#if __CUDA_ARCH__ >= 900

  // One lane's copies of a group: a slice of every stage. Tiles are contiguous within a panel.
  class Copies {
   public:
    __device__ __forceinline__ Copies(const void* weights, int rows, int k, bool, const ChainShare& share, int group,
                                      int warp)
        : first_slice_(warp * kCopySlices) {
      const int slice = first_slice_ + static_cast<int>(threadIdx.x) % 32;
      const int tile = share.begin + group * kTiles;
      const int tiles = min(kTiles, share.count - group * kTiles);
      const int slices = k / kSliceK;
      const int row_tiles = rows / kTileRows;
      const int panel = tile / kPanelTiles * kPanelTiles;
      const int height = min(kPanelTiles, row_tiles - panel);
      const int in_first = min(tiles, panel + kPanelTiles - tile);
      first_bytes_ = in_first * kTileBytes;
      second_bytes_ = (tiles - in_first) * kTileBytes;
      const auto* const base = static_cast<const unsigned char*>(weights);
      first_ = base + (std::int64_t{panel} * slices + slice * height + tile - panel) * kTileBytes;
      first_stride_ = kSlices * height * kTileBytes;
      const int next_panel = panel + kPanelTiles;
      const int next_height = min(kPanelTiles, row_tiles - next_panel);
      second_ = base + (std::int64_t{next_panel} * slices + slice * next_height) * kTileBytes;
      second_stride_ = kSlices * next_height * kTileBytes;
    }

    // Of a stage with `left` of k in front of it.
    __device__ __forceinline__ int bytes(int left) const {
      return (first_bytes_ + second_bytes_) * max(min(left / kSliceK - first_slice_, kCopySlices), 0);
    }

    __device__ __forceinline__ void start(std::uint32_t stage, std::uint32_t barrier, int left, std::uint64_t policy) {
      const int lane = threadIdx.x % 32;
      if (lane >= min(left / kSliceK - first_slice_, kCopySlices)) return;
      const std::uint32_t target = stage + (first_slice_ + lane) * kSliceBytes;
      bulk_load(target, first_, first_bytes_, barrier, policy);
      if (second_bytes_ > 0) bulk_load(target + first_bytes_, second_, second_bytes_, barrier, policy);
      first_ += first_stride_;
      second_ += second_stride_;
    }

   private:
    int first_slice_;  // of the warp
    const unsigned char* first_;
    const unsigned char* second_;
    int first_stride_;
    int second_stride_;
    int first_bytes_;
    int second_bytes_;
  };

  // Puts elements 8 i to 8 i + 7 of x in their place; all lanes of a warp together. Eight lanes have a slice.
  __device__ static __forceinline__ void put_x(unsigned char* x, int k, int i, const uint4& v, bool exists) {
    if (exists) reinterpret_cast<uint4*>(x)[i] = v;
    float sum = 0;
    for (const std::uint32_t word : {v.x, v.y, v.z, v.w}) {
      const float2 pair = unpack_pair<__half>(word);
      sum += pair.x + pair.y;
    }
#pragma unroll
    for (int step = 4; step > 0; step /= 2) sum += __shfl_xor_sync(~0U, sum, step);
    using Codes = CodeForm<__half, 4>;
    if (exists && i % 8 == 0)
      reinterpret_cast<float2*>(x + k * 2)[i / 8] = {-(Codes::kOffset + Codes::kMiddle) * sum,
                                                     -(Codes::kOffset + Codes::kHighStep * Codes::kMiddle) * sum};
  }

  // A lane's sums of a group: rows g and g + 8 of each tile, the latter kHighStep times too large.
  class Sums {
   public:
    // sums += W[group, stage] x^T: this warp's part of a stage with `left` of k in front of it.
    __device__ __forceinline__ void multiply(std::uint32_t stage, std::uint32_t x, std::uint32_t x_end, int at_k,
                                             int left) {
      const int warp = threadIdx.x / 32;
      const std::uint32_t starts = x_end + at_k / kSliceK * 8;
      if (left >= kStageK) {  // so that slices can run beside each other
#pragma unroll
        for (int i = 0; i < kWarpSlices; ++i) multiply_slice(i * kWarps + warp, stage, x, starts);
      } else {
#pragma unroll 1
        for (int slice = warp; slice < left / kSliceK; slice += kWarps) multiply_slice(slice, stage, x, starts);
      }
    }

    // The warp's sums of the group's rows.
    __device__ __forceinline__ void put(float (&to)[kGroupRows]) const {
      const int lane = threadIdx.x % 32;
      if (lane % 4 != 0) return;
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        to[tile * kTileRows + lane / 4] = sums_[tile][0];
        to[tile * kTileRows + lane / 4 + 8] = sums_[tile][1] * (1.0F / CodeForm<__half, 4>::kHighStep);
      }
    }

   private:
    __device__ __forceinline__ void multiply_slice(int slice, std::uint32_t stage, std::uint32_t x,
                                                   std::uint32_t starts) {
      using Codes = CodeForm<__half, 4>;
      const int lane = threadIdx.x % 32;
      // All rows of an 8 x 8 tile are the token's 8 elements.
      std::uint32_t b[2][4];
      ldmatrix_x4(b[0], x + slice * 128 + lane / 8 * 16);
      ldmatrix_x4(b[1], x + slice * 128 + 64 + lane / 8 * 16);
      const float2 start = load_shared_two_floats(starts + slice * 8);
      float part[kTiles][4];
      std::uint32_t words[kTiles][4];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        load_codes<4>(stage + slice * kSliceBytes + tile * kTileBytes + lane * 16, words[tile]);
        part[tile][0] = part[tile][1] = start.x;
        part[tile][2] = part[tile][3] = start.y;
      }
#pragma unroll
      for (int step = 0; step < 4; ++step)
#pragma unroll
        for (int tile = 0; tile < kTiles; ++tile) {
          std::uint32_t a[4];
          Codes::raw(&words[tile][step], a);
          mma_m16n8k16<__half>(part[tile], a, b[step / 2][step % 2 * 2], b[step / 2][step % 2 * 2 + 1]);
        }
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const std::uint32_t scales = stage + slice * kSliceBytes + tile * kTileBytes + kScalesAt + lane / 4 * 2;
        sums_[tile][0] += to_float(half_of<__half>(load_shared_2b(scales))) * part[tile][0];
        sums_[tile][1] += to_float(half_of<__half>(load_shared_2b(scales + 16))) * part[tile][2];
      }
    }

    float sums_[kTiles][2] = {};
  };

#endif
};

}  // namespace inferometer::decoder
