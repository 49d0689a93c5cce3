// One value from all threads of a block.
#pragma once

#include <cstdint>

namespace inferometer {

inline constexpr int kMostWarps = 32;

// `combine` is associative and commutative; whole warps. The answer reaches every thread. `shared`: kMostWarps values
// that nothing else uses until the block's next barrier but one.
template <class T, class Combine>
__device__ T reduce_block(T value, T neutral, T* shared, Combine combine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, distance));
  const auto lane = threadIdx.x % 32;
  if (lane == 0) shared[threadIdx.x / 32] = value;
  __syncthreads();
  value = lane < blockDim.x / 32 ? shared[lane] : neutral;
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, distance));
  return value;
}

}  // namespace inferometer
