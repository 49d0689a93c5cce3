// Barriers in shared memory for stages filled by cp.async, on every GPU that has cp.async (PTX mbarrier, sm_80).
// mbarrier.cuh has those that also count the bytes of the copy engine (sm_90).
//
// A barrier goes through phases. A phase ends when as many arrivals came as stage_barrier_init said; the next one
// begins at once. stage_barrier_wait names a phase by its parity: it returns when the phase of that parity has ended,
// at once for parity 1 on a fresh barrier.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX mbarrier.init.shared.b64 (sm_80). `barrier` is a shared address, 8-byte aligned. Seen by other threads of the
// block after a __syncthreads.
__device__ __forceinline__ void stage_barrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals) : "memory");
}

// PTX mbarrier.arrive.shared.b64 (sm_80): one arrival. What this thread read or wrote before comes before the phase's
// end.
__device__ __forceinline__ void stage_barrier_arrive(std::uint32_t barrier) {
  asm volatile("{\n.reg .b64 state;\nmbarrier.arrive.shared.b64 state, [%0];\n}\n" ::"r"(barrier) : "memory");
}

// PTX cp.async.mbarrier.arrive.noinc.shared.b64 (sm_80): one arrival, once all copies that this thread has started with
// cp.async are complete. They are visible to those who then have waited for the phase.
__device__ __forceinline__ void stage_barrier_arrive_copied(std::uint32_t barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];\n" ::"r"(barrier) : "memory");
}

// PTX mbarrier.try_wait.parity (sm_90), which sleeps for a time that the hardware limits; before it
// mbarrier.test_wait.parity (sm_80). Returns when the phase of this parity has ended.
__device__ __forceinline__ void stage_barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t done;
  do {
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
#if __CUDA_ARCH__ >= 900
        "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n"
#else
        "mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
#endif
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
  } while (done == 0);
}

}  // namespace inferometer
