#include <algorithm>
#include <cuda/ptx>
#include <stdexcept>
#include <string>

#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

constexpr int kBlockThreads = 512;
constexpr int kReadUnroll = 4;       // 16-byte loads in flight per thread: 64 bytes x 2048 threads cover the latency
constexpr int kAccumulators = 16;    // multiply-adds in flight per thread; 4 would hide the latency of one
constexpr int kTickGiveUp = 100000;  // cycles; a global timer that stands still must not hang the stream

int multiprocessors() {
  int device = 0;
  int count = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&device));
  INFEROMETER_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

// The same on every multiprocessor; ticks may be a microsecond apart.
__device__ __forceinline__ std::int64_t global_nanoseconds() {
  return static_cast<std::int64_t>(cuda::ptx::get_sreg_globaltimer());
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

__device__ __forceinline__ std::uint32_t fold(uint4 v) { return v.x ^ v.y ^ v.z ^ v.w; }

template <Dtype kDtype>
using StoredElement = decltype(stored_element<kDtype>(0.0F));

template <Dtype kDtype>
__global__ void __launch_bounds__(kBlockThreads)
    fill_normal_kernel(StoredElement<kDtype>* destination, std::int64_t elements, std::uint64_t key, float scale,
                       std::int32_t offset) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kBlockThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x; i < elements; i += stride)
    destination[i] = normal_element<kDtype>(key, static_cast<std::uint64_t>(i), scale, offset);
}

__global__ void __launch_bounds__(kBlockThreads)
    fill_random_bytes_kernel(std::uint64_t* destination, std::int64_t bytes, std::uint64_t key, bool without_e4m3_nan) {
  const std::int64_t stride = std::int64_t{gridDim.x} * kBlockThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x; 8 * i < bytes; i += stride) {
    std::uint64_t word = random_word(key, static_cast<std::uint64_t>(i), without_e4m3_nan);
    if (8 * i + 8 <= bytes) {
      destination[i] = word;
    } else {  // the last, in part
      auto* const last = reinterpret_cast<std::uint8_t*>(destination + i);
      for (std::int64_t byte = 0; byte < bytes - 8 * i; ++byte, word >>= 8)
        last[byte] = static_cast<std::uint8_t>(word);
    }
  }
}

// `repeats` runs of `run` bytes, `stride` apart.
__global__ void __launch_bounds__(kBlockThreads)
    set_all_bits_kernel(std::uint8_t* first, std::int64_t run, std::int64_t repeats, std::int64_t stride) {
  const std::int64_t step = std::int64_t{gridDim.x} * kBlockThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x; i < run * repeats; i += step)
    first[i / run * stride + i % run] = 0xff;
}

// Blocks stride over tiles of kReadUnroll x kBlockThreads vectors. Whole tiles need no bound check, so that all loads
// of a tile are issued before the first is used.
__global__ void __launch_bounds__(kBlockThreads)
    read_kernel(const uint4* data, std::int64_t vectors, std::uint32_t* sink, ClockSample* clock) {
  const bool watches_clock = clock != nullptr && blockIdx.x == 0 && threadIdx.x == 0;
  ClockSample start;
  if (watches_clock) start = clock_at_tick();
  constexpr std::int64_t kTile = std::int64_t{kReadUnroll} * kBlockThreads;
  std::uint32_t folded = 0;
  std::int64_t tile = blockIdx.x * kTile;
  for (; tile + kTile <= vectors; tile += gridDim.x * kTile) {
    uint4 loaded[kReadUnroll];
#pragma unroll
    for (int i = 0; i < kReadUnroll; ++i) loaded[i] = __ldcg(data + tile + i * kBlockThreads + threadIdx.x);
#pragma unroll
    for (int i = 0; i < kReadUnroll; ++i) folded ^= fold(loaded[i]);
  }
  // At most one block has a part of a tile left.
  for (std::int64_t index = tile + threadIdx.x; index < vectors; index += kBlockThreads)
    folded ^= fold(__ldcg(data + index));
  if (folded == 0x9e3779b9U) *sink = folded;  // so that no load is dropped
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
#pragma unroll 32
  for (int turn = 0; turn < turns; ++turn) {
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) accumulators[i] = fmaf(accumulators[i], factor, term);
  }
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) sum += accumulators[i];
  if (sum == 0.125F) *sink = sum;  // keeps the arithmetic alive
}

template <Dtype kDtype>
void fill_normal(void* destination, std::int64_t elements, std::uint64_t key, float scale, std::int32_t offset,
                 Stream stream) {
  fill_normal_kernel<kDtype><<<multiprocessors() * 4, kBlockThreads, 0, stream>>>(
      static_cast<StoredElement<kDtype>*>(destination), elements, key, scale, offset);
}

}  // namespace

void launch_fill_normal(Dtype dtype, void* destination, std::int64_t elements, std::uint64_t key, float scale,
                        std::int32_t offset, Stream stream) {
  switch (dtype) {
    case Dtype::f16: fill_normal<Dtype::f16>(destination, elements, key, scale, offset, stream); break;
    case Dtype::bf16: fill_normal<Dtype::bf16>(destination, elements, key, scale, offset, stream); break;
    case Dtype::f32: fill_normal<Dtype::f32>(destination, elements, key, scale, offset, stream); break;
    case Dtype::i32:
    case Dtype::u8:
      throw std::invalid_argument("fill: a Normal source needs f16, bf16 or f32, got " +
                                  std::string(dtype_name(dtype)));
  }
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_fill_random_bytes(void* destination, std::size_t bytes, std::uint64_t key, Stream stream,
                              bool without_e4m3_nan) {
  fill_random_bytes_kernel<<<multiprocessors() * 4, kBlockThreads, 0, stream>>>(
      static_cast<std::uint64_t*>(destination), static_cast<std::int64_t>(bytes), key, without_e4m3_nan);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_set_all_bits(void* destination, const ElementRange& range, std::size_t element_bytes, Stream stream) {
  const auto size = static_cast<std::int64_t>(element_bytes);
  const std::int64_t run = (range.end - range.begin) * size;
  if (run == 0) return;
  const std::int64_t blocks = std::min<std::int64_t>((run * range.repeats + kBlockThreads - 1) / kBlockThreads,
                                                     std::int64_t{multiprocessors()} * 4);
  set_all_bits_kernel<<<static_cast<unsigned>(blocks), kBlockThreads, 0, stream>>>(
      static_cast<std::uint8_t*>(destination) + range.begin * size, run, range.repeats, range.stride * size);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_read(const void* data, std::size_t bytes, std::uint32_t* sink, ClockSample* clock, Stream stream) {
  constexpr std::int64_t kTileBytes = std::int64_t{kReadUnroll} * kBlockThreads * sizeof(uint4);
  constexpr std::int64_t kResidentBlocks = 2048 / kBlockThreads;  // on one multiprocessor of 8.0 or 9.0
  const auto vectors = static_cast<std::int64_t>(bytes / sizeof(uint4));
  // One tile a block reads fastest (4.61 against 4.58 TB/s on an H200). A clock sample needs a block that lasts as long
  // as the kernel, so there the blocks are no more than fit, and loop.
  std::int64_t blocks = (static_cast<std::int64_t>(bytes) + kTileBytes - 1) / kTileBytes;
  if (clock != nullptr) blocks = std::min(blocks, multiprocessors() * kResidentBlocks);
  read_kernel<<<static_cast<unsigned>(std::max<std::int64_t>(blocks, 1)), kBlockThreads, 0, stream>>>(
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
