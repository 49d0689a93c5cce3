#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

constexpr int kBlockThreads = 512;
constexpr int kReadUnroll = 8;       // 16-byte loads in flight per thread: 128 bytes x 2048 threads cover the latency
constexpr int kAccumulators = 16;    // multiply-adds in flight per thread; 4 would hide the latency of one
constexpr int kTickGiveUp = 100000;  // cycles; a global timer that stands still must not hang the stream

int multiprocessors() {
  int device = 0;
  int count = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// PTX special register %globaltimer: nanoseconds, the same on every multiprocessor; ticks may be a microsecond apart.
__device__ __forceinline__ std::int64_t global_nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

// Both clocks at an edge of the global timer, so that its coarse ticks do not round the interval.
__device__ __forceinline__ ClockSample clock_at_tick() {
  const std::int64_t entered = clock64();
  const std::int64_t before = global_nanoseconds();
  std::int64_t now = before;
  while (now == before && clock64() - entered < kTickGiveUp) now = global_nanoseconds();
  return {clock64(), now};
}

__device__ __forceinline__ ClockSample operator-(ClockSample a, ClockSample b) {
  return {a.cycles - b.cycles, a.nanoseconds - b.nanoseconds};
}

template <class Element>
__device__ __forceinline__ Element rounded(float value);
template <>
__device__ __forceinline__ float rounded<float>(float value) {
  return value;
}

struct F16 {
  std::uint16_t bits;
};
template <>
__device__ __forceinline__ F16 rounded<F16>(float value) {
  return {f16_bits(value)};
}

struct Bf16 {
  std::uint16_t bits;
};
template <>
__device__ __forceinline__ Bf16 rounded<Bf16>(float value) {
  return {bf16_bits(value)};
}

template <class Element>
__global__ void __launch_bounds__(kBlockThreads)
    fill_normal_kernel(Element* destination, std::int64_t elements, std::uint64_t key, float scale) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kBlockThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x; i < elements; i += stride)
    destination[i] = rounded<Element>(normal_at(key, static_cast<std::uint64_t>(i), scale));
}

__global__ void __launch_bounds__(kBlockThreads)
    fill_random_bytes_kernel(std::uint64_t* destination, std::int64_t words, std::uint64_t key) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kBlockThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x; i < words; i += stride)
    destination[i] = mix_bits(key + static_cast<std::uint64_t>(i));
}

// Blocks stride over tiles of kReadUnroll x kBlockThreads vectors; the unroll keeps that many loads in flight.
__global__ void __launch_bounds__(kBlockThreads)
    read_kernel(const uint4* data, std::int64_t vectors, std::uint32_t* sink, ClockSample* clock) {
  const bool watches_clock = clock != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  ClockSample start;
  if (watches_clock) start = clock_at_tick();
  constexpr std::int64_t kTile = std::int64_t{kReadUnroll} * kBlockThreads;
  std::uint32_t folded = 0;
  for (std::int64_t tile = blockIdx.x * kTile; tile < vectors; tile += gridDim.x * kTile) {
    uint4 loaded[kReadUnroll];
#pragma unroll
    for (int i = 0; i < kReadUnroll; ++i) {
      const std::int64_t index = tile + i * kBlockThreads + threadIdx.x;
      loaded[i] = index < vectors ? __ldcg(data + index) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < kReadUnroll; ++i) folded ^= loaded[i].x ^ loaded[i].y ^ loaded[i].z ^ loaded[i].w;
  }
  if (folded == 0x9e3779b9U) *sink = folded;  // one word in 2^32 thread results, for random data
  if (watches_clock) *clock = clock_at_tick() - start;
}

__global__ void spin_kernel(std::int64_t nanoseconds, ClockSample* clock) {
  const ClockSample start = clock_at_tick();
  // At most 4 cycles a nanosecond: no chip clocks higher, and a standing timer must end too.
  while (global_nanoseconds() - start.nanoseconds < nanoseconds && clock64() - start.cycles < 4 * nanoseconds) {
  }
  if (clock != nullptr) *clock = clock_at_tick() - start;
}

__global__ void empty_kernel() {}

__global__ void __launch_bounds__(kBlockThreads) multiply_add_kernel(int turns, float factor, float term, float* sink) {
  float accumulators[kAccumulators];
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i)
    accumulators[i] = normal_at(i, blockIdx.x * kBlockThreads + threadIdx.x, 1.0F / 65536);
#pragma unroll 8
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) accumulators[i] = fmaf(accumulators[i], factor, term);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) sum += accumulators[i];
  if (sum == 0.125F) *sink = sum;  // keeps the arithmetic alive
}

template <class Element>
void fill_normal(void* destination, std::int64_t elements, std::uint64_t key, float scale, Stream stream) {
  fill_normal_kernel<<<multiprocessors() * 4, kBlockThreads, 0, stream>>>(static_cast<Element*>(destination), elements,
                                                                          key, scale);
}

}  // namespace

void launch_fill_normal(Dtype dtype, void* destination, std::int64_t elements, std::uint64_t key, float scale,
                        Stream stream) {
  switch (dtype) {
    case Dtype::f16: fill_normal<F16>(destination, elements, key, scale, stream); break;
    case Dtype::bf16: fill_normal<Bf16>(destination, elements, key, scale, stream); break;
    case Dtype::f32: fill_normal<float>(destination, elements, key, scale, stream); break;
    case Dtype::i32: throw std::invalid_argument("fill: a Normal source needs f16, bf16 or f32, got i32");
  }
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_fill_random_bytes(void* destination, std::size_t bytes, std::uint64_t key, Stream stream) {
  fill_random_bytes_kernel<<<multiprocessors() * 4, kBlockThreads, 0, stream>>>(
      static_cast<std::uint64_t*>(destination), static_cast<std::int64_t>(bytes / sizeof(std::uint64_t)), key);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_read(const void* data, std::size_t bytes, std::uint32_t* sink, ClockSample* clock, Stream stream) {
  constexpr int kBlocksPerMultiprocessor = 4;  // 2048 threads: all that fit
  const auto vectors = static_cast<std::int64_t>(bytes / sizeof(uint4));
  read_kernel<<<multiprocessors() * kBlocksPerMultiprocessor, kBlockThreads, 0, stream>>>(
      static_cast<const uint4*>(data), vectors, sink, clock);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_spin(std::int64_t nanoseconds, ClockSample* clock, Stream stream) {
  spin_kernel<<<1, 1, 0, stream>>>(nanoseconds, clock);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_empty(Stream stream) {
  empty_kernel<<<1, 1, 0, stream>>>();
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

double launch_multiply_add(int turns, float* sink, Stream stream) {
  const int blocks = multiprocessors() * 4;
  multiply_add_kernel<<<blocks, kBlockThreads, 0, stream>>>(turns, -0.9995F, 0.25F, sink);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
  return 2.0 * kAccumulators * turns * blocks * kBlockThreads;
}

}  // namespace inferometer
