// Matrix products of a warpgroup (PTX wgmma.mma_async, sm_90a): D = A B + D, A [64, k], B [k, N], D [64, N].
//
// Four consecutive warps, the first a multiple of 4, issue them together. They run asynchronously: between wgmma_fence
// and wgmma_wait no register of D, nor of an A in registers, may be touched. With w = warp % 4, g = lane / 4 and
// t = lane % 4, a thread's part of D [64, N] is
//   d[4 j + 0], d[4 j + 1]   D[16 w + g][8 j + 2 t], [8 j + 2 t + 1]
//   d[4 j + 2], d[4 j + 3]   D[16 w + g + 8][the same]
// and four registers of packed pairs hold A [64, 16] as mma.sync's A [16, 16] (ptx/mma.cuh) of rows 16 w .. 16 w + 15.
// Matrices in shared memory come as descriptors (common/wgmma_matrix.cuh).
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// PTX wgmma.fence.sync.aligned: registers and shared memory written before are seen by wgmmas issued after. (Shared
// memory written by ordinary stores needs fence_async_shared too.)
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;\n" ::: "memory"); }

// PTX wgmma.commit_group.sync.aligned: the wgmmas issued since the last one are a group.
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;\n" ::: "memory"); }

// PTX wgmma.wait_group.sync.aligned: until all but the kPending newest groups are done.
template <int kPending>
__device__ __forceinline__ void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;\n" ::"n"(kPending) : "memory");
}

// Keeps the compiler from moving accesses to these registers across this place.
__device__ __forceinline__ void pin(float& d) { asm volatile("" : "+f"(d)::"memory"); }
template <int kCount>
__device__ __forceinline__ void pin_registers(float (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(d[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin_registers(std::uint32_t (&a)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(a[i])::"memory");
}
template <int kCount>
__device__ __forceinline__ void pin_registers(std::int32_t (&d)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+r"(d[i])::"memory");
}

// How the k and N of B lie in shared memory: k_major, rows of B's transpose; n_major, rows of B (16-bit types only).
enum class BLayout : int { k_major = 0, n_major = 1 };

// f16 and bf16, k = 16, f32 accumulation. T is the type of A and B. `accumulate` false: D = A B.
template <class T, int N>
struct Wgmma {
  // A and B from descriptors, A k-major.
  template <BLayout kB>
  __device__ static void run(float (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate);
  // A in registers.
  template <BLayout kB>
  __device__ static void run(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t b, bool accumulate);
};

// s8, k = 32, s32 accumulation, A and B k-major from descriptors.
template <int N>
struct WgmmaS8 {
  __device__ static void run(std::int32_t (&d)[N / 2], std::uint64_t a, std::uint64_t b, bool accumulate);
};

// The register lists of an instruction with 4 to 128 accumulators.
// clang-format off
#define INFEROMETER_FOUR(a, b, c, d) "%" #a ", %" #b ", %" #c ", %" #d
#define INFEROMETER_NAMES_4 INFEROMETER_FOUR(0, 1, 2, 3)
#define INFEROMETER_NAMES_8 INFEROMETER_NAMES_4 ", " INFEROMETER_FOUR(4, 5, 6, 7)
#define INFEROMETER_NAMES_12 INFEROMETER_NAMES_8 ", " INFEROMETER_FOUR(8, 9, 10, 11)
#define INFEROMETER_NAMES_16 INFEROMETER_NAMES_12 ", " INFEROMETER_FOUR(12, 13, 14, 15)
#define INFEROMETER_NAMES_20 INFEROMETER_NAMES_16 ", " INFEROMETER_FOUR(16, 17, 18, 19)
#define INFEROMETER_NAMES_24 INFEROMETER_NAMES_20 ", " INFEROMETER_FOUR(20, 21, 22, 23)
#define INFEROMETER_NAMES_28 INFEROMETER_NAMES_24 ", " INFEROMETER_FOUR(24, 25, 26, 27)
#define INFEROMETER_NAMES_32 INFEROMETER_NAMES_28 ", " INFEROMETER_FOUR(28, 29, 30, 31)
#define INFEROMETER_NAMES_36 INFEROMETER_NAMES_32 ", " INFEROMETER_FOUR(32, 33, 34, 35)
#define INFEROMETER_NAMES_40 INFEROMETER_NAMES_36 ", " INFEROMETER_FOUR(36, 37, 38, 39)
#define INFEROMETER_NAMES_44 INFEROMETER_NAMES_40 ", " INFEROMETER_FOUR(40, 41, 42, 43)
#define INFEROMETER_NAMES_48 INFEROMETER_NAMES_44 ", " INFEROMETER_FOUR(44, 45, 46, 47)
#define INFEROMETER_NAMES_52 INFEROMETER_NAMES_48 ", " INFEROMETER_FOUR(48, 49, 50, 51)
#define INFEROMETER_NAMES_56 INFEROMETER_NAMES_52 ", " INFEROMETER_FOUR(52, 53, 54, 55)
#define INFEROMETER_NAMES_60 INFEROMETER_NAMES_56 ", " INFEROMETER_FOUR(56, 57, 58, 59)
#define INFEROMETER_NAMES_64 INFEROMETER_NAMES_60 ", " INFEROMETER_FOUR(60, 61, 62, 63)
#define INFEROMETER_NAMES_68 INFEROMETER_NAMES_64 ", " INFEROMETER_FOUR(64, 65, 66, 67)
#define INFEROMETER_NAMES_72 INFEROMETER_NAMES_68 ", " INFEROMETER_FOUR(68, 69, 70, 71)
#define INFEROMETER_NAMES_76 INFEROMETER_NAMES_72 ", " INFEROMETER_FOUR(72, 73, 74, 75)
#define INFEROMETER_NAMES_80 INFEROMETER_NAMES_76 ", " INFEROMETER_FOUR(76, 77, 78, 79)
#define INFEROMETER_NAMES_84 INFEROMETER_NAMES_80 ", " INFEROMETER_FOUR(80, 81, 82, 83)
#define INFEROMETER_NAMES_88 INFEROMETER_NAMES_84 ", " INFEROMETER_FOUR(84, 85, 86, 87)
#define INFEROMETER_NAMES_92 INFEROMETER_NAMES_88 ", " INFEROMETER_FOUR(88, 89, 90, 91)
#define INFEROMETER_NAMES_96 INFEROMETER_NAMES_92 ", " INFEROMETER_FOUR(92, 93, 94, 95)
#define INFEROMETER_NAMES_100 INFEROMETER_NAMES_96 ", " INFEROMETER_FOUR(96, 97, 98, 99)
#define INFEROMETER_NAMES_104 INFEROMETER_NAMES_100 ", " INFEROMETER_FOUR(100, 101, 102, 103)
#define INFEROMETER_NAMES_108 INFEROMETER_NAMES_104 ", " INFEROMETER_FOUR(104, 105, 106, 107)
#define INFEROMETER_NAMES_112 INFEROMETER_NAMES_108 ", " INFEROMETER_FOUR(108, 109, 110, 111)
#define INFEROMETER_NAMES_116 INFEROMETER_NAMES_112 ", " INFEROMETER_FOUR(112, 113, 114, 115)
#define INFEROMETER_NAMES_120 INFEROMETER_NAMES_116 ", " INFEROMETER_FOUR(116, 117, 118, 119)
#define INFEROMETER_NAMES_124 INFEROMETER_NAMES_120 ", " INFEROMETER_FOUR(120, 121, 122, 123)
#define INFEROMETER_NAMES_128 INFEROMETER_NAMES_124 ", " INFEROMETER_FOUR(124, 125, 126, 127)
#define INFEROMETER_BIND(type, i) type(d[i]), type(d[(i) + 1]), type(d[(i) + 2]), type(d[(i) + 3])
#define INFEROMETER_REGISTERS_4(type) INFEROMETER_BIND(type, 0)
#define INFEROMETER_REGISTERS_8(type) INFEROMETER_REGISTERS_4(type), INFEROMETER_BIND(type, 4)
#define INFEROMETER_REGISTERS_12(type) INFEROMETER_REGISTERS_8(type), INFEROMETER_BIND(type, 8)
#define INFEROMETER_REGISTERS_16(type) INFEROMETER_REGISTERS_12(type), INFEROMETER_BIND(type, 12)
#define INFEROMETER_REGISTERS_20(type) INFEROMETER_REGISTERS_16(type), INFEROMETER_BIND(type, 16)
#define INFEROMETER_REGISTERS_24(type) INFEROMETER_REGISTERS_20(type), INFEROMETER_BIND(type, 20)
#define INFEROMETER_REGISTERS_28(type) INFEROMETER_REGISTERS_24(type), INFEROMETER_BIND(type, 24)
#define INFEROMETER_REGISTERS_32(type) INFEROMETER_REGISTERS_28(type), INFEROMETER_BIND(type, 28)
#define INFEROMETER_REGISTERS_36(type) INFEROMETER_REGISTERS_32(type), INFEROMETER_BIND(type, 32)
#define INFEROMETER_REGISTERS_40(type) INFEROMETER_REGISTERS_36(type), INFEROMETER_BIND(type, 36)
#define INFEROMETER_REGISTERS_44(type) INFEROMETER_REGISTERS_40(type), INFEROMETER_BIND(type, 40)
#define INFEROMETER_REGISTERS_48(type) INFEROMETER_REGISTERS_44(type), INFEROMETER_BIND(type, 44)
#define INFEROMETER_REGISTERS_52(type) INFEROMETER_REGISTERS_48(type), INFEROMETER_BIND(type, 48)
#define INFEROMETER_REGISTERS_56(type) INFEROMETER_REGISTERS_52(type), INFEROMETER_BIND(type, 52)
#define INFEROMETER_REGISTERS_60(type) INFEROMETER_REGISTERS_56(type), INFEROMETER_BIND(type, 56)
#define INFEROMETER_REGISTERS_64(type) INFEROMETER_REGISTERS_60(type), INFEROMETER_BIND(type, 60)
#define INFEROMETER_REGISTERS_68(type) INFEROMETER_REGISTERS_64(type), INFEROMETER_BIND(type, 64)
#define INFEROMETER_REGISTERS_72(type) INFEROMETER_REGISTERS_68(type), INFEROMETER_BIND(type, 68)
#define INFEROMETER_REGISTERS_76(type) INFEROMETER_REGISTERS_72(type), INFEROMETER_BIND(type, 72)
#define INFEROMETER_REGISTERS_80(type) INFEROMETER_REGISTERS_76(type), INFEROMETER_BIND(type, 76)
#define INFEROMETER_REGISTERS_84(type) INFEROMETER_REGISTERS_80(type), INFEROMETER_BIND(type, 80)
#define INFEROMETER_REGISTERS_88(type) INFEROMETER_REGISTERS_84(type), INFEROMETER_BIND(type, 84)
#define INFEROMETER_REGISTERS_92(type) INFEROMETER_REGISTERS_88(type), INFEROMETER_BIND(type, 88)
#define INFEROMETER_REGISTERS_96(type) INFEROMETER_REGISTERS_92(type), INFEROMETER_BIND(type, 92)
#define INFEROMETER_REGISTERS_100(type) INFEROMETER_REGISTERS_96(type), INFEROMETER_BIND(type, 96)
#define INFEROMETER_REGISTERS_104(type) INFEROMETER_REGISTERS_100(type), INFEROMETER_BIND(type, 100)
#define INFEROMETER_REGISTERS_108(type) INFEROMETER_REGISTERS_104(type), INFEROMETER_BIND(type, 104)
#define INFEROMETER_REGISTERS_112(type) INFEROMETER_REGISTERS_108(type), INFEROMETER_BIND(type, 108)
#define INFEROMETER_REGISTERS_116(type) INFEROMETER_REGISTERS_112(type), INFEROMETER_BIND(type, 112)
#define INFEROMETER_REGISTERS_120(type) INFEROMETER_REGISTERS_116(type), INFEROMETER_BIND(type, 116)
#define INFEROMETER_REGISTERS_124(type) INFEROMETER_REGISTERS_120(type), INFEROMETER_BIND(type, 120)
#define INFEROMETER_REGISTERS_128(type) INFEROMETER_REGISTERS_124(type), INFEROMETER_BIND(type, 124)
// clang-format on

// R: accumulators a thread, N / 2; R1 .. R6: the numbers of the operands after them.
#define INFEROMETER_WGMMA_TYPE(T, ptx, N, R, R1, R2, R3, R4, R5, R6)                                                  \
  template <>                                                                                                         \
  template <BLayout kB>                                                                                               \
  __device__ __forceinline__ void Wgmma<T, N>::run(float(&d)[R], std::uint64_t a, std::uint64_t b, bool accumulate) { \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #R2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." ptx \
                 "." ptx " {" INFEROMETER_NAMES_##R "}, %" #R ", %" #R1 ", p, 1, 1, 0, %" #R3 ";\n}\n"                \
                 : INFEROMETER_REGISTERS_##R("+f")                                                                    \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)), "n"(static_cast<int>(kB)));                     \
  }                                                                                                                   \
  template <>                                                                                                         \
  template <BLayout kB>                                                                                               \
  __device__ __forceinline__ void Wgmma<T, N>::run(float(&d)[R], const std::uint32_t(&a)[4], std::uint64_t b,         \
                                                   bool accumulate) {                                                 \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #R5 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N "k16.f32." ptx \
                 "." ptx " {" INFEROMETER_NAMES_##R "}, {%" #R ", %" #R1 ", %" #R2 ", %" #R3 "}, %" #R4               \
                                                    ", p, 1, 1, %" #R6 ";\n}\n"                                       \
                 : INFEROMETER_REGISTERS_##R("+f")                                                                    \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(static_cast<int>(accumulate)),             \
                   "n"(static_cast<int>(kB)));                                                                        \
  }

#define INFEROMETER_WGMMA(N, R, R1, R2, R3, R4, R5, R6)                                                  \
  INFEROMETER_WGMMA_TYPE(__half, "f16", N, R, R1, R2, R3, R4, R5, R6)                                    \
  INFEROMETER_WGMMA_TYPE(__nv_bfloat16, "bf16", N, R, R1, R2, R3, R4, R5, R6)                            \
  template <>                                                                                            \
  __device__ __forceinline__ void WgmmaS8<N>::run(std::int32_t(&d)[R], std::uint64_t a, std::uint64_t b, \
                                                  bool accumulate) {                                     \
    asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #R2 ", 0;\nwgmma.mma_async.sync.aligned.m64n" #N   \
                 "k32.s32.s8.s8"                                                                         \
                 " {" INFEROMETER_NAMES_##R "}, %" #R ", %" #R1 ", p;\n}\n"                              \
                 : INFEROMETER_REGISTERS_##R("+r")                                                       \
                 : "l"(a), "l"(b), "r"(static_cast<int>(accumulate)));                                   \
  }

INFEROMETER_WGMMA(8, 4, 5, 6, 7, 8, 9, 10)
INFEROMETER_WGMMA(16, 8, 9, 10, 11, 12, 13, 14)
INFEROMETER_WGMMA(24, 12, 13, 14, 15, 16, 17, 18)
INFEROMETER_WGMMA(32, 16, 17, 18, 19, 20, 21, 22)
INFEROMETER_WGMMA(48, 24, 25, 26, 27, 28, 29, 30)
INFEROMETER_WGMMA(64, 32, 33, 34, 35, 36, 37, 38)
INFEROMETER_WGMMA_TYPE(__half, "f16", 72, 36, 37, 38, 39, 40, 41, 42)  // s8 has no such N
INFEROMETER_WGMMA_TYPE(__nv_bfloat16, "bf16", 72, 36, 37, 38, 39, 40, 41, 42)
INFEROMETER_WGMMA(80, 40, 41, 42, 43, 44, 45, 46)
INFEROMETER_WGMMA(96, 48, 49, 50, 51, 52, 53, 54)
INFEROMETER_WGMMA(112, 56, 57, 58, 59, 60, 61, 62)
INFEROMETER_WGMMA(128, 64, 65, 66, 67, 68, 69, 70)
INFEROMETER_WGMMA(144, 72, 73, 74, 75, 76, 77, 78)
INFEROMETER_WGMMA(160, 80, 81, 82, 83, 84, 85, 86)
INFEROMETER_WGMMA(176, 88, 89, 90, 91, 92, 93, 94)
INFEROMETER_WGMMA(192, 96, 97, 98, 99, 100, 101, 102)
INFEROMETER_WGMMA(208, 104, 105, 106, 107, 108, 109, 110)
INFEROMETER_WGMMA(224, 112, 113, 114, 115, 116, 117, 118)
INFEROMETER_WGMMA(256, 128, 129, 130, 131, 132, 133, 134)

#endif

}  // namespace inferometer
