#include "kernels/common/tensor_map.hpp"

#include <cudaTypedefs.h>

#include <stdexcept>
#include <string>

#include "harness/operator/cuda_check.cuh"

namespace inferometer {
namespace {

// Asked of the driver at run time, so that the program starts on machines without one.
PFN_cuTensorMapEncodeTiled_v12000 encode_tiled() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  INFEROMETER_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess)
    throw std::runtime_error("the CUDA driver has no cuTensorMapEncodeTiled: version 12.0 or later is needed");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
}

CUtensorMapDataType map_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case Dtype::bf16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case Dtype::f32: return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case Dtype::i32: return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case Dtype::u8: return CU_TENSOR_MAP_DATA_TYPE_UINT8;
    default: throw std::invalid_argument("a tensor map cannot hold " + std::string(dtype_name(dtype)));
  }
}

template <std::size_t kRank>
CUtensorMap encode(Dtype dtype, const void* base, const TensorMapShape<kRank>& shape) {
  static const PFN_cuTensorMapEncodeTiled_v12000 function = encode_tiled();
  std::array<std::uint32_t, kRank> element_strides;
  element_strides.fill(1);
  const bool is_narrow = shape.box[0] * dtype_bytes(dtype) == 64;
  CUtensorMap map;
  const CUresult result =
      function(&map, map_type(dtype), kRank, const_cast<void*>(base), shape.sizes.data(), shape.stride_bytes.data(),
               shape.box.data(), element_strides.data(), CU_TENSOR_MAP_INTERLEAVE_NONE,
               is_narrow ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled failed with CUresult " + std::to_string(result));
  return map;
}

}  // namespace

CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<2>& shape) {
  return encode(dtype, base, shape);
}

CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<4>& shape) {
  return encode(dtype, base, shape);
}

CUtensorMap make_tensor_map(Dtype dtype, const void* base, const TensorMapShape<5>& shape) {
  return encode(dtype, base, shape);
}

}  // namespace inferometer
