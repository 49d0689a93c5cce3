// Barriers in shared memory that count arrivals and bytes copied (PTX mbarrier, sm_90), and the fences beside them.
//
// A barrier goes through phases. A phase ends when as many arrivals came as mbarrier_init said and all bytes announced
// to it have been written; the next one begins at once. mbarrier_wait names a phase by its parity: it returns when the
// phase of that parity has ended, at once for parity 1 on a fresh barrier.
#pragma once

#include <cstdint>

namespace inferometer {

#if __CUDA_ARCH__ >= 900

// PTX mbarrier.init.shared::cta.b64. `barrier` is a shared address, 8-byte aligned. Seen by other threads after
// mbarrier_init_fence and a barrier of the block (or cluster).
__device__ __forceinline__ void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}

// PTX fence.mbarrier_init.release.cluster: makes initialised barriers known to the copy engine and the cluster.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

// PTX mbarrier.arrive.shared::cta.b64: one arrival. What this thread read or wrote before comes before the phase's end.
__device__ __forceinline__ void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

// PTX mbarrier.arrive.shared::cluster.b64 on the same barrier of block `rank` of the cluster. Unlike mbarrier_arrive it
// orders nothing for threads of that block: enough where wgmma has read what the copy engine overwrites next. (Release
// at the scope of a cluster would cost about a microsecond.)
__device__ __forceinline__ void mbarrier_arrive_cluster(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// PTX mbarrier.arrive.expect_tx.shared::cta.b64: one arrival, and `bytes` more to be written before the phase ends.
__device__ __forceinline__ void mbarrier_arrive_expect_bytes(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes) : "memory");
}

// PTX mbarrier.try_wait.parity.shared::cta.b64: whether the phase of this parity has ended, after waiting for a time
// that the hardware limits.
__device__ __forceinline__ bool mbarrier_try_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  asm volatile(
      "{\n"
      ".reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "}\n"
      : "=r"(done)
      : "r"(barrier), "r"(parity)
      : "memory");
  return done != 0;
}

// Until the phase of this parity has ended.
__device__ __forceinline__ void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  while (!mbarrier_try_wait(barrier, parity)) {
  }
}

// PTX fence.proxy.async.shared::cta: this thread's ordinary accesses to shared memory come before what the copy engine
// and the tensor cores do after a barrier that follows.
__device__ __forceinline__ void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;\n" ::: "memory"); }

#endif

}  // namespace inferometer
