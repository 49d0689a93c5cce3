// wgmma with an A that lies in shared memory by columns (PTX wgmma.mma_async, sm_90a): D [64, N] = A B + D as in
// ptx/wgmma.cuh, of an A stored [k, 64], one panel, and a k-major B.
#pragma once

#include <cstdint>

#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// f16 and bf16, k = 16, f32 accumulation. A's descriptor is that of an n_major matrix. `accumulate` false: D = A B.
template <class T, int N>
struct WgmmaMMajor {
  __device__ static void run(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate);
};

// R: accumulators a thread, N / 2; R1, R2: the numbers of the operands after them.
#define INFEROMETER_WGMMA_M_MAJOR_TYPE(T, ptx, N, R, R1, R2)                                                          \
  template <>                                                                                                         \
  __device__ __forceinline__ void WgmmaMMajor<T, N>::run(float(&d)[R], std::uint64_t a, std::uint64_t b,              \
                                                         bool accumulate) {                                           \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #R2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." ptx \
                 "." ptx " {" INFEROMETER_NAMES_##R "}, %" #R ", %" #R1 ", p, 1, 1, 1, 0;\n}\n"                       \
                 : INFEROMETER_REGISTERS_##R("+f")                                                                    \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                                \
  }
#define INFEROMETER_WGMMA_M_MAJOR(N, R, R1, R2)               \
  INFEROMETER_WGMMA_M_MAJOR_TYPE(__half, "f16", N, R, R1, R2) \
  INFEROMETER_WGMMA_M_MAJOR_TYPE(__nv_bfloat16, "bf16", N, R, R1, R2)

INFEROMETER_WGMMA_M_MAJOR(16, 8, 9, 10)
INFEROMETER_WGMMA_M_MAJOR(32, 16, 17, 18)
INFEROMETER_WGMMA_M_MAJOR(64, 32, 33, 34)
INFEROMETER_WGMMA_M_MAJOR(128, 64, 65, 66)
INFEROMETER_WGMMA_M_MAJOR(160, 80, 81, 82)
INFEROMETER_WGMMA_M_MAJOR(192, 96, 97, 98)

#endif

}  // namespace inferometer
