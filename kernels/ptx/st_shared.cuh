// Stores to shared memory by its 32-bit address (PTX st.shared). Visible to the block after the next __syncthreads, to
// the warp after the next __syncwarp.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX st.shared.v4.u32. `dst` is 16-byte aligned.
__device__ __forceinline__ void store_zeros_16b(std::uint32_t dst) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %1, %1, %1};\n" ::"r"(dst), "r"(0) : "memory");
}

// PTX st.shared.v4.f32. `dst` is 16-byte aligned.
__device__ __forceinline__ void store_shared_16b(std::uint32_t dst, float4 value) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};\n" ::"r"(dst), "f"(value.x), "f"(value.y), "f"(value.z),
               "f"(value.w)
               : "memory");
}

// PTX st.shared.f32. `dst` is 4-byte aligned.
__device__ __forceinline__ void store_shared_4b(std::uint32_t dst, float value) {
  asm volatile("st.shared.f32 [%0], %1;\n" ::"r"(dst), "f"(value) : "memory");
}

// PTX st.shared.u32. `dst` is 4-byte aligned.
__device__ __forceinline__ void store_zeros_4b(std::uint32_t dst) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(dst), "r"(0) : "memory");
}

}  // namespace inferometer
