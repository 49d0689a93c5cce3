// SwiGLU: silu(g) u, silu(g) = g / (1 + e^-g) (Shazeer, "GLU Variants Improve Transformer", 2020).
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"

namespace inferometer {

// Within some 4 steps of f32. A very negative g gives -0: the quotient by infinity.
__device__ __forceinline__ float swiglu(float gate, float up) { return __fdividef(gate, 1.0F + __expf(-gate)) * up; }

// Of two neighbouring features, rounded and packed.
__device__ __forceinline__ std::uint32_t swiglu_pair(float2 gate, float2 up) {
  return pack_pair<__half>(swiglu(gate.x, up.x), swiglu(gate.y, up.y));
}

}  // namespace inferometer
