// Asynchronous copies from global to shared memory by way of L1; commit and wait are in cp_async.cuh.
//
// On an H200 the way around L1 (cp.async.cg) asks L2 for every 16-byte piece on its own, so each 32-byte sector travels
// twice: 12 requests and 32 sectors for a warp's 512 bytes (Nsight Compute), 4.2 TB/s at most. By way of L1 the same
// copies reach 11.2 TB/s.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX cp.async.ca.shared.global with src-size, 16 bytes (sm_80). Starts a copy that goes through L1. `dst` is a shared
// address (shared_address); both addresses are 16-byte aligned. With `valid` false it reads nothing and stores zeros.
__device__ __forceinline__ void cp_async_16b_l1_zfill(std::uint32_t dst, const void* src, bool valid) {
  const int src_bytes = valid ? 16 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\n" ::"r"(dst), "l"(src), "r"(src_bytes) : "memory");
}

}  // namespace inferometer
