// What a launch of mma_matmul_kernel takes.
#pragma once

#include <cstdint>

#include "kernels/matmul/work_split.cuh"

struct float4;

namespace inferometer {

// Where blocks meet that share a tile of Y; used where split.shares_tiles().
struct SharedSums {
  float4* sums;        // [slot, mma tiles of a warp, threads]
  unsigned* arrivals;  // [tiles_n, tiles_m], zero between launches
};

template <class T>
struct MmaMatmulArgs {
  const T* x;  // [m, k]
  const T* w;  // [n, k], or of tiles that are w_is_kn [k, n] with n a multiple of 8
  T* y;        // [m, n]
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;  // a multiple of 8, below 2^31
  WorkSplit split;
  SharedSums shared;
};

}  // namespace inferometer
