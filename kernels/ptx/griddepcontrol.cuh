// PTX griddepcontrol.wait (sm_90): a grid that was launched with programmatic stream serialization may begin before the
// one in front of it has ended. Returns once all grids that this one depends on have ended and what they wrote is
// visible. Nothing that they write may be read, and nothing that they read may be written, before it. Without such a
// launch, and on older chips, it does nothing.
#pragma once

namespace inferometer {

__device__ __forceinline__ void griddepcontrol_wait() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
#endif
}

}  // namespace inferometer
