// How long lines that a copy brings are to stay in the L2 (PTX createpolicy, sm_80).
#pragma once

#include <cstdint>

namespace inferometer {

// PTX createpolicy.fractional.L2::evict_first.b64: all lines go first.
__device__ __forceinline__ std::uint64_t evict_first_policy() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}

}  // namespace inferometer
