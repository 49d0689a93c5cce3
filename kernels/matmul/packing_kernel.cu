#include "kernels/matmul/packing_kernel.hpp"

#include <cstddef>
#include <cstdint>

#include "harness/operator/cuda_check.cuh"

namespace inferometer {
namespace {

constexpr int kPackThreads = 128;

// The canonical tensors (reference/matmul/layout.hpp). What lies past an edge reads as 0.
struct Canonical {
  PackedShape shape;
  const std::uint8_t* codes;
  const std::uint16_t* scales;  // bits of f16 or bf16
  const std::uint8_t* zeros;
  std::int64_t groups;

  template <int kBits>
  __device__ std::uint32_t code(std::int64_t row, std::int64_t k) const {
    if (row >= shape.n || k >= shape.k) return 0;
    if constexpr (kBits == 4) return codes[row * (shape.k / 2) + k / 2] >> k % 2 * 4 & 0xfU;
    return codes[row * shape.k + k] ^ (shape.symmetric ? 0x80U : 0U);  // two's complement becomes a code around 128
  }

  __device__ std::uint16_t scale(std::int64_t row, std::int64_t group) const {
    return row < shape.n && group < groups ? scales[row * groups + group] : std::uint16_t{0};
  }

  template <int kBits>
  __device__ std::uint8_t zero(std::int64_t row, std::int64_t group) const {
    if (row >= shape.n || group >= groups) return 0;
    if constexpr (kBits == 4) return zeros[row * ((groups + 1) / 2) + group / 2] >> group % 2 * 4 & 0xf;
    return zeros[row * groups + group];
  }
};

// One tile a block.
template <int kBits>
__global__ void __launch_bounds__(kPackThreads) pack_tile_kernel(const Canonical from, unsigned char* packed) {
  const PackedShape& shape = from.shape;
  const std::int64_t row_tile = blockIdx.x / shape.slices();
  const std::int64_t slice = blockIdx.x % shape.slices();
  const std::int64_t first_row = row_tile * kTileRows;
  const std::int64_t first_k = slice * kSliceK;
  unsigned char* const tile = packed + shape.tile_at(row_tile, slice);
  for (int word = threadIdx.x; word < shape.scales_at() / 4; word += kPackThreads) {
    std::uint32_t codes = 0;
    for (int field = 0; field < 32 / kBits; ++field) {
      const TileElement element = tile_element<kBits>(word, field);
      codes |= from.code<kBits>(first_row + element.row, first_k + element.k) << kBits * field;
    }
    reinterpret_cast<std::uint32_t*>(tile)[word] = codes;
  }
  for (int i = threadIdx.x; i < shape.slice_groups() * kTileRows; i += kPackThreads) {
    const std::int64_t row = first_row + i % kTileRows;
    const std::int64_t group = shape.group_of(first_k + i / kTileRows * (kSliceK / shape.slice_groups()));
    reinterpret_cast<std::uint16_t*>(tile + shape.scales_at())[i] = from.scale(row, group);
    if (!shape.symmetric) tile[shape.zeros_at() + i] = from.zero<kBits>(row, group);
  }
}

}  // namespace

PackedShape packed_shape(const MatmulProblem& p) {
  return {.n = p.n,
          .k = p.k,
          .bits = static_cast<int>(p.bits),
          .group_size = static_cast<int>(p.group_size),
          .symmetric = p.symmetric};
}

std::shared_ptr<void> pack_weights(const MatmulProblem& p, const MatmulTensors& t, Stream stream,
                                   Allocator& allocator) {
  const Canonical from = {.shape = packed_shape(p),
                          .codes = static_cast<const std::uint8_t*>(t.w),
                          .scales = static_cast<const std::uint16_t*>(t.scales),
                          .zeros = t.zeros,
                          .groups = p.groups()};
  std::shared_ptr<void> packed = allocator.allocate(static_cast<std::size_t>(from.shape.bytes()), "packed_weights");
  const auto tiles = static_cast<unsigned>(from.shape.row_tiles() * from.shape.slices());
  const auto kernel = p.bits == 4 ? &pack_tile_kernel<4> : &pack_tile_kernel<8>;
  kernel<<<tiles, kPackThreads, 0, stream>>>(from, static_cast<unsigned char*>(packed.get()));
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
  return packed;
}

}  // namespace inferometer
