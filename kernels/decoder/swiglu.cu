#include "kernels/decoder/swiglu.hpp"

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/decoder/weight_prefetch.cuh"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kThreads = 128;
constexpr int kVecElems = 8;  // f16 values in one 16-byte access

__device__ std::uint32_t swiglu_pair(std::uint32_t gate, std::uint32_t up) {
  const float2 g = unpack_pair<__half>(gate);
  const float2 u = unpack_pair<__half>(up);
  return pack_pair<__half>(g.x / (1 + __expf(-g.x)) * u.x, g.y / (1 + __expf(-g.y)) * u.y);
}

__global__ void __launch_bounds__(kThreads)
    swiglu_kernel(const uint4* x, uint4* to, int row_vecs, const WeightPrefetch next, unsigned row_blocks) {
  if (blockIdx.x >= row_blocks) {  // of one row of blocks
    if (blockIdx.y == 0) prefetch_weights(next, blockIdx.x - row_blocks, gridDim.x - row_blocks);
    return;
  }
  const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  griddepcontrol_wait();
  if (i >= row_vecs) return;
  const std::int64_t token = blockIdx.y;
  const uint4 gate = x[2 * token * row_vecs + i];
  const uint4 up = x[(2 * token + 1) * row_vecs + i];
  to[token * row_vecs + i] = {swiglu_pair(gate.x, up.x), swiglu_pair(gate.y, up.y), swiglu_pair(gate.z, up.z),
                              swiglu_pair(gate.w, up.w)};
}

}  // namespace

void launch_swiglu(const __half* x, __half* to, std::int64_t tokens, std::int64_t n, const WeightPrefetch& next,
                   Stream stream) {
  const auto row_vecs = static_cast<int>(n / kVecElems);
  const auto blocks = static_cast<unsigned>((row_vecs + kThreads - 1) / kThreads);
  launch_dependent(&swiglu_kernel, dim3(blocks + prefetch_blocks(next), static_cast<unsigned>(tokens)), dim3(kThreads),
                   0, stream, reinterpret_cast<const uint4*>(x), reinterpret_cast<uint4*>(to), row_vecs, next, blocks);
}

}  // namespace inferometer::decoder
