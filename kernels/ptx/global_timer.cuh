// A clock that all multiprocessors share.
#pragma once

#include <cstdint>

namespace inferometer {

// PTX mov.u64 from %globaltimer (sm_30): nanoseconds, in steps of up to a microsecond.
__device__ __forceinline__ std::uint64_t global_timer_ns() {
  std::uint64_t ns;
  asm volatile("mov.u64 %0, %%globaltimer;\n" : "=l"(ns));
  return ns;
}

}  // namespace inferometer
