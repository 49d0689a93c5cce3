// Thread block clusters: their barrier, and stores to the shared memory of another block (PTX, sm_90).
#pragma once

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX barrier.cluster.arrive.release. What this thread stored before, to whichever block, is seen after their
// cluster_wait by all threads of the cluster.
__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release;\n" ::: "memory"); }

// PTX barrier.cluster.arrive.relaxed. Orders nothing: for what no ordinary access depends on. (A release takes the time
// of a fence of the whole GPU.)
__device__ __forceinline__ void cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;\n"); }

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

// PTX st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32. As store_cluster_16b, but counted by `barrier`, in
// the same block as `dst` and also from cluster_address: seen by whoever waited for the phase that expects the bytes.
__device__ __forceinline__ void store_cluster_async_16b(std::uint32_t dst, float4 value, std::uint32_t barrier) {
  asm volatile(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.f32 [%0], {%1, %2, %3, %4}, [%5];\n" ::"r"(dst),
      "f"(value.x), "f"(value.y), "f"(value.z), "f"(value.w), "r"(barrier)
      : "memory");
}

// PTX %cluster_ctarank, %clusterid.x, %nclusterid.x: this block's number in its cluster, the cluster's in the grid, and
// how many there are. Of a launch without clusters each block is one.
__device__ __forceinline__ std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;\n" : "=r"(rank));
  return rank;
}
__device__ __forceinline__ std::uint32_t cluster_id() {
  std::uint32_t id;
  asm("mov.u32 %0, %%clusterid.x;\n" : "=r"(id));
  return id;
}
__device__ __forceinline__ std::uint32_t cluster_count() {
  std::uint32_t count;
  asm("mov.u32 %0, %%nclusterid.x;\n" : "=r"(count));
  return count;
}

#endif

}  // namespace inferometer
