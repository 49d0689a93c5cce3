// One block a token: reads it once, keeps it in registers, agrees on its greatest magnitude, and writes codes.
// Bound by memory: 3 bytes an element.
#include "kernels/matmul/quantize_activations.hpp"

#include <cmath>

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/half_ops.cuh"

namespace inferometer {
namespace {

constexpr int kThreads = 256;
constexpr int kChunkElems = 8;   // 16 bytes of X, 8 bytes of codes
constexpr int kMostChunks = 16;  // of a thread, in registers: 32768 elements of a token; what follows is read twice
constexpr float kLargestCode = 127;
constexpr std::uint32_t kLeastGreatest = 0x0d800000U;  // 2^-100, as the bits of a float
constexpr std::uint32_t kInfinity = 0x7f800000U;

// The greater magnitude of each half of a pair, f16 or bf16: as integers they have the order of magnitudes, and NaN
// comes after all.
__device__ __forceinline__ std::uint32_t max_magnitudes(std::uint32_t greatest, std::uint32_t pair) {
  return __vmaxu2(greatest, pair & 0x7fff7fffU);
}

__device__ __forceinline__ std::uint32_t max_magnitudes(std::uint32_t greatest, const uint4& chunk) {
  greatest = max_magnitudes(greatest, chunk.x);
  greatest = max_magnitudes(greatest, chunk.y);
  greatest = max_magnitudes(greatest, chunk.z);
  return max_magnitudes(greatest, chunk.w);
}

// The greatest of all threads' pairs, as the bits of a float that is not negative or of a NaN.
template <class T>
__device__ __forceinline__ std::uint32_t block_greatest(std::uint32_t pair) {
  __shared__ std::uint32_t of_warp[kThreads / 32];
  const float2 two = unpack_pair<T>(pair);
  const std::uint32_t own = max(__float_as_uint(two.x), __float_as_uint(two.y));
  const std::uint32_t greatest = __reduce_max_sync(~0U, own);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = greatest;
  __syncthreads();
  return __reduce_max_sync(~0U, of_warp[threadIdx.x % (kThreads / 32)]);
}

// Rounds to nearest, ties to even, by adding 1.5 * 2^23; the code is the lowest byte.
__device__ __forceinline__ std::uint32_t code_bits(float x, float inverse) {
  return __float_as_uint(__fadd_rn(__fmul_rn(x, inverse), 12582912.0F));
}

// Four elements, from two pairs.
template <class T>
__device__ __forceinline__ std::uint32_t four_codes(std::uint32_t first, std::uint32_t second, float inverse) {
  const float2 a = unpack_pair<T>(first);
  const float2 b = unpack_pair<T>(second);
  const std::uint32_t low = __byte_perm(code_bits(a.x, inverse), code_bits(a.y, inverse), 0x0040);
  const std::uint32_t high = __byte_perm(code_bits(b.x, inverse), code_bits(b.y, inverse), 0x0040);
  return __byte_perm(low, high, 0x5410);
}

template <class T>
__device__ __forceinline__ uint2 chunk_codes(const uint4& chunk, float inverse) {
  return {four_codes<T>(chunk.x, chunk.y, inverse), four_codes<T>(chunk.z, chunk.w, inverse)};
}

template <class T, int kChunks>
__global__ void __launch_bounds__(kThreads)
    quantize_activations_kernel(const uint4* __restrict__ x, int chunks, uint2* __restrict__ codes,
                                float* __restrict__ scales) {
  const std::int64_t row = std::int64_t{blockIdx.x} * chunks;
  const int thread = static_cast<int>(threadIdx.x);
  uint4 held[kChunks];
  std::uint32_t pair = 0;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int chunk = thread + i * kThreads;
    held[i] = chunk < chunks ? x[row + chunk] : make_uint4(0, 0, 0, 0);
  }
#pragma unroll
  for (int i = 0; i < kChunks; ++i) pair = max_magnitudes(pair, held[i]);
  for (int chunk = thread + kChunks * kThreads; chunk < chunks; chunk += kThreads)
    pair = max_magnitudes(pair, x[row + chunk]);

  const std::uint32_t bits = max(block_greatest<T>(pair), kLeastGreatest);
  const float greatest = __uint_as_float(bits);
  const float inverse = __fdiv_rn(kLargestCode, greatest);
  if (thread == 0) scales[blockIdx.x] = bits < kInfinity ? __fdiv_rn(greatest, kLargestCode) : NAN;
#pragma unroll
  for (int i = 0; i < kChunks; ++i) {
    const int chunk = thread + i * kThreads;
    if (chunk < chunks) codes[row + chunk] = chunk_codes<T>(held[i], inverse);
  }
  for (int chunk = thread + kChunks * kThreads; chunk < chunks; chunk += kThreads)
    codes[row + chunk] = chunk_codes<T>(x[row + chunk], inverse);
}

// With as few registers as hold the token.
template <class T, int kChunks = 1>
auto kernel_for(int chunks) {
  if constexpr (kChunks < kMostChunks)
    if (chunks > kChunks * kThreads) return kernel_for<T, 2 * kChunks>(chunks);
  return &quantize_activations_kernel<T, kChunks>;
}

constexpr std::size_t kAlignment = 256;

std::size_t code_bytes(const MatmulProblem& p) {
  return (static_cast<std::size_t>(p.m * p.k) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

std::size_t quantized_activation_bytes(const MatmulProblem& p) {
  return code_bytes(p) + static_cast<std::size_t>(p.m + p.m % 2) * sizeof(float);
}

QuantizedActivations place_activations(const MatmulProblem& p, std::byte* memory) {
  return {.codes = reinterpret_cast<std::int8_t*>(memory), .scales = reinterpret_cast<float*>(memory + code_bytes(p))};
}

void launch_quantize_activations(const MatmulProblem& p, const void* x, const QuantizedActivations& to, Stream stream) {
  const int chunks = static_cast<int>(p.k / kChunkElems);
  with_half_type(p.dtype, [&]<class T>() {
    kernel_for<T>(chunks)<<<static_cast<unsigned>(p.m), kThreads, 0, stream>>>(
        static_cast<const uint4*>(x), chunks, reinterpret_cast<uint2*>(to.codes), to.scales);
    INFEROMETER_CUDA_CHECK(cudaGetLastError());
  });
}

}  // namespace inferometer
