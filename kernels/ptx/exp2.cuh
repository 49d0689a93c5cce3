// Powers of two in one instruction.
#pragma once

namespace inferometer {

// PTX ex2.approx.ftz.f32 (sm_75): 2^x with relative error at most 2^-22; subnormal inputs and results become 0, and
// 2^-inf is 0. exp2f is the same plus two instructions that keep subnormal results.
__device__ __forceinline__ float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace inferometer
