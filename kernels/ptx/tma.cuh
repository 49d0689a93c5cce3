// Copies of boxes of a tensor by the copy engine (PTX cp.async.bulk.tensor, sm_90).
//
// `map` is a tensor map (kernels/common/tensor_map.hpp) that is a __grid_constant__ parameter of the kernel;
// coordinates are in elements, fastest dimension first, of the box's first element. Elements outside the tensor arrive
// as zeros and are not stored, but count as bytes. Shared addresses are 128-byte aligned. One thread starts the copy.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX prefetch.tensormap.
__device__ __forceinline__ void tma_prefetch_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// PTX cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes: to this block. The bytes are
// visible to whoever waited for the phase of `barrier` that counts them.
__device__ __forceinline__ void tma_load_4d(std::uint32_t dst, const CUtensorMap* map, std::uint32_t barrier, int c0,
                                            int c1, int c2, int c3) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], "
      "[%2];\n" ::"r"(dst),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3)
      : "memory");
}

// The same of five dimensions.
__device__ __forceinline__ void tma_load_5d(std::uint32_t dst, const CUtensorMap* map, std::uint32_t barrier, int c0,
                                            int c1, int c2, int c3, int c4) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
      "%7}], [%2];\n" ::"r"(dst),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
      : "memory");
}

// The same of two dimensions.
__device__ __forceinline__ void tma_load_2d(std::uint32_t dst, const CUtensorMap* map, std::uint32_t barrier, int c0,
                                            int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], "
      "[%2];\n" ::"r"(dst),
      "l"(map), "r"(barrier), "r"(c0), "r"(c1)
      : "memory");
}

// The same with .multicast::cluster: into the same place of every block of the cluster whose bit is set in `blocks`,
// counted by the barrier in the same place there.
__device__ __forceinline__ void tma_load_2d_multicast(std::uint32_t dst, const CUtensorMap* map, std::uint32_t barrier,
                                                      std::uint16_t blocks, int c0, int c1) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], "
      "[%1, {%4, %5}], [%2], %3;\n" ::"r"(dst),
      "l"(map), "r"(barrier), "h"(blocks), "r"(c0), "r"(c1)
      : "memory");
}

// PTX cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group: from shared memory to the tensor. Needs
// fence_async_shared and a barrier after the box was written; it may be overwritten after tma_store_wait_read.
__device__ __forceinline__ void tma_store_2d(const CUtensorMap* map, std::uint32_t src, int c0, int c1) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];\n" ::"l"(map),
               "r"(src), "r"(c0), "r"(c1)
               : "memory");
}

// PTX cp.async.bulk.commit_group: the stores this thread started since the last one are a group.
__device__ __forceinline__ void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;\n" ::: "memory"); }

// PTX cp.async.bulk.wait_group.read: until all but the kPending newest groups of this thread have read their source.
template <int kPending>
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;\n" ::"n"(kPending) : "memory");
}

#endif

}  // namespace inferometer
