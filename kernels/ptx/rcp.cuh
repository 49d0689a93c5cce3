// Reciprocals in one instruction.
#pragma once

namespace inferometer {

// PTX rcp.approx.ftz.f32 (sm_75): 1 / x with an error of at most 1 in the last place; subnormal inputs count as 0, and
// 1 / 0 is infinite.
__device__ __forceinline__ float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace inferometer
