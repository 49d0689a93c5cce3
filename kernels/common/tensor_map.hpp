// Tensor maps: how the copy engine (ptx/tma.cuh) finds a box of a tensor in global memory. Made on the host for one
// pointer and passed to the kernel as a __grid_constant__ parameter.
#pragma once

#include <cuda.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

template <std::size_t kRank>
struct TensorMapShape {
  std::array<std::uint64_t, kRank> sizes;             // in elements, fastest dimension first; 1 .. 2^32
  std::array<std::uint64_t, kRank - 1> stride_bytes;  // of dimensions 1 ..; multiples of 16, below 2^40
  std::array<std::uint32_t, kRank> box;               // elements copied at once, at most 256 each
};

// `base` is a device pointer, 16-byte aligned. A box's row (box[0] elements) takes 128 bytes, stored with the 128-byte
// swizzle of common/wgmma_matrix.cuh, or 64, with the 64-byte one: 16 bytes number c of row r lie at c ^ r / 2 % 4.
// Elements outside the tensor read as zeros. u8 stands for any type of one byte. Throws CudaError or
// std::runtime_error, naming the driver's answer.
CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<2>& shape);
CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<4>& shape);
CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<5>& shape);

}  // namespace inferometer
