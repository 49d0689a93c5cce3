#include "kernels/decoder/swiglu.hpp"

#include "kernels/common/swiglu.cuh"
#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/matmul/product_ends.hpp"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kThreads = 128;
constexpr int kVecElems = 8;  // f16 values in one 16-byte access
static_assert(kVecElems == kGatedRows);

__device__ std::uint32_t swiglu_pair(std::uint32_t gate, std::uint32_t up) {
  return inferometer::swiglu_pair(unpack_pair<__half>(gate), unpack_pair<__half>(up));
}

__global__ void __launch_bounds__(kThreads) swiglu_kernel(const uint4* x, uint4* to, int row_vecs) {
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  griddepcontrol_wait();
  if (i >= row_vecs) return;
  const std::int64_t at = std::int64_t{blockIdx.y} * row_vecs + i;
  const uint4 gate = x[2 * at];
  const uint4 up = x[2 * at + 1];
  to[at] = {swiglu_pair(gate.x, up.x), swiglu_pair(gate.y, up.y), swiglu_pair(gate.z, up.z), swiglu_pair(gate.w, up.w)};
}

}  // namespace

void launch_swiglu(const __half* x, __half* to, std::int64_t tokens, std::int64_t n, Stream stream) {
  const auto row_vecs = static_cast<int>(n / kVecElems);
  const auto blocks = static_cast<unsigned>((row_vecs + kThreads - 1) / kThreads);
  launch_dependent(&swiglu_kernel, dim3(blocks, static_cast<unsigned>(tokens)), dim3(kThreads), 0, stream,
                   reinterpret_cast<const uint4*>(x), reinterpret_cast<uint4*>(to), row_vecs);
}

}  // namespace inferometer::decoder
