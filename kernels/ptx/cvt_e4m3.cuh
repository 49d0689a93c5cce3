// Conversion to FP8 E4M3.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX cvt.rn.satfinite.e4m3x2.f32 (sm_89): `low` in bits 0-7, `high` in bits 8-15. Rounds to nearest even; magnitudes
// past 448 become 448, zeros keep their sign.
__device__ __forceinline__ std::uint32_t cvt_e4m3x2(float low, float high) {
  std::uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\n" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

}  // namespace inferometer
