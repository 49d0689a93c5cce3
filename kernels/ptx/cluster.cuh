// Thread block clusters: their barrier, and stores to the shared memory of another block (PTX, sm_90).
#pragma once

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX barrier.cluster.arrive.release. What this thread stored before, to whichever block, is seen after their
// cluster_wait by all threads of the cluster.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;\n" ::: "memory"); }

// PTX barrier.cluster.wait.acquire. Waits for the arrival of every thread of the cluster that has not ended.
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire;\n" ::: "memory"); }

// PTX mapa.shared::cluster. The address, in the cluster's window, of `address` in the shared memory of block `rank`.
__device__ __forceinline__ std::uint32_t cluster_address(std::uint32_t address, std::uint32_t rank) {
  std::uint32_t mapped;
  asm("mapa.shared::cluster.u32 %0, %1, %2;\n" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// PTX st.shared::cluster.v4.f32. `dst` from cluster_address, 16-byte aligned.
__device__ __forceinline__ void store_cluster_16b(std::uint32_t dst, float4 value) {
  asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(dst), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
}

// PTX st.shared::cluster.v2.f32. `dst` from cluster_address, 8-byte aligned.
__device__ __forceinline__ void store_cluster_8b(std::uint32_t dst, float2 value) {
  asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};\n" ::"r"(dst), "f"(value.x), "f"(value.y) : "memory");
}

#endif

}  // namespace inferometer
