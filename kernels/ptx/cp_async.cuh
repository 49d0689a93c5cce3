// Asynchronous copies from global to shared memory, without a trip through registers (PTX cp.async, sm_80).
// A copy is visible to its own thread after the cp_async_wait that covers it, and to the block after the
// __syncthreads that follows.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX cp.async.cg.shared.global, 16 bytes (sm_80). Starts a copy that skips L1. `dst` is a shared address
// (shared_address); both addresses are 16-byte aligned.
__device__ __forceinline__ void cp_async_16b(std::uint32_t dst, const void* src) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(dst), "l"(src) : "memory");
}

// PTX cp.async.cg.shared.global with src-size, 16 bytes (sm_80). As above; with `valid` false it reads nothing and
// stores zeros.
__device__ __forceinline__ void cp_async_16b_zfill(std::uint32_t dst, const void* src, bool valid) {
  const int src_bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(src_bytes) : "memory");
}

// PTX cp.async.ca.shared.global, 4 bytes (sm_80). Starts a copy by way of L1; both addresses are 4-byte aligned.
__device__ __forceinline__ void cp_async_4b(std::uint32_t dst, const void* src) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;\n" ::"r"(dst), "l"(src) : "memory");
}

// PTX cp.async.commit_group (sm_80). Closes the group of this thread's copies started since the last commit; a group
// may be empty.
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }

// PTX cp.async.wait_group (sm_80). Waits until at most the newest kPending groups of this thread are unfinished.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

}  // namespace inferometer
