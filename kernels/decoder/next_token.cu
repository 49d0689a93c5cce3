#include "kernels/decoder/next_token.hpp"

#include "harness/operator/generate.hpp"
#include "kernels/common/block_reduce.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kThreads = 1024;
constexpr int kVecElems = 8;           // f16 values in one 16-byte access
constexpr int kBins = 256;             // a byte of a logit's order
constexpr float kChanceOne = 0x1p40F;  // of the greatest logit; 2^18 of them fit 64 bits

// Unsigned integers in the order of the values. NaN stands above infinity.
__device__ std::uint32_t order_of(__half value) {
  const std::uint32_t bits = __half_as_ushort(value);
  return (bits & 0x8000U) != 0 ? 0xffffU & ~bits : bits | 0x8000U;
}

// Of two values in a word.
__device__ std::uint32_t orders_of(std::uint32_t pair) {
  return pair ^ 0x80008000U ^ (pair >> 15 & 0x00010001U) * 0x7fffU;
}

__device__ std::uint64_t greater(std::uint64_t a, std::uint64_t b) { return a > b ? a : b; }

// The order above, and below it what makes the first index win.
__device__ std::uint64_t greatest(const __half* logits, int vocabulary, std::uint64_t* shared) {
  std::uint64_t best = 0;
  const auto entry = [](std::uint32_t order, int i) {
    return std::uint64_t{order} << 32 | (0xffffffffU - static_cast<std::uint32_t>(i));
  };
  if (vocabulary % kVecElems == 0) {  // one SM reads all of a row: much of it at a time
    constexpr int kAtOnce = 8;
    const int vecs = vocabulary / kVecElems;
    int best_order = -1;
    int best_vec = 0;
    for (int first = static_cast<int>(threadIdx.x); first < vecs; first += kAtOnce * kThreads) {
      uint4 vec[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j)  // what is past the end comes once more, and does not count
        vec[j] = reinterpret_cast<const uint4*>(logits)[min(first + j * kThreads, vecs - 1)];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const std::uint32_t pair = __vmaxu2(__vmaxu2(orders_of(vec[j].x), orders_of(vec[j].y)),
                                            __vmaxu2(orders_of(vec[j].z), orders_of(vec[j].w)));
        const auto order = static_cast<int>(max(pair >> 16, pair & 0xffffU));
        if (order <= best_order) continue;
        best_order = order;
        best_vec = min(first + j * kThreads, vecs - 1);
      }
    }
    for (int i = best_vec * kVecElems; best_order >= 0 && i < (best_vec + 1) * kVecElems; ++i)
      if (order_of(logits[i]) == static_cast<std::uint32_t>(best_order)) best = greater(best, entry(best_order, i));
    return reduce_block(best, std::uint64_t{0}, shared, greater);
  }
  for (int i = static_cast<int>(threadIdx.x); i < vocabulary; i += kThreads)
    best = greater(best, entry(order_of(logits[i]), i));
  return reduce_block(best, std::uint64_t{0}, shared, greater);
}

__device__ int index_of(std::uint64_t best) {
  return static_cast<int>(0xffffffffU - static_cast<std::uint32_t>(best & 0xffffffffU));
}

__global__ void __launch_bounds__(kThreads, 1) greedy_kernel(const NextTokenArgs args) {
  __shared__ std::uint64_t shared[kMostWarps];
  const std::int64_t row = blockIdx.x;
  griddepcontrol_wait();
  const int place = args.places[row];
  if (place < 0) return;
  const std::uint64_t best = greatest(args.logits + row * args.vocabulary, args.vocabulary, shared);
  if (threadIdx.x == 0) args.next[place] = index_of(best);
}

// A row's chances: whole numbers, the greatest logit's being kChanceOne.
struct Chances {
  const __half* logits;
  float greatest;
  float inverse_temperature;

  __device__ std::uint64_t of(int token) const {
    const float chance = expf((to_float(logits[token]) - greatest) * inverse_temperature) * kChanceOne;
    return static_cast<std::uint64_t>(fminf(chance, kChanceOne));  // infinite logits make NaN: as likely as any
  }
};

// Adds up by a byte of the order, `shift` bits up, those tokens whose order has `prefix` above that byte. Then thread 0
// finds the lowest bin that the nucleus reaches down to: with it and all bins above, `wanted` is reached.
__device__ void find_bin(const Chances& chances, int vocabulary, int shift, std::uint32_t prefix, std::uint64_t* bins,
                         std::uint64_t& wanted, std::uint32_t& bin) {
  for (int i = static_cast<int>(threadIdx.x); i < kBins; i += kThreads) bins[i] = 0;
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < vocabulary; i += kThreads) {
    const std::uint32_t order = order_of(chances.logits[i]);
    if (order >> (shift + 8) != prefix) continue;
    atomicAdd(reinterpret_cast<unsigned long long*>(bins + (order >> shift & 0xffU)), chances.of(i));
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    bin = kBins - 1;
    while (bin > 0 && bins[bin] < wanted) wanted -= bins[bin--];
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads, 1) top_p_kernel(const NextTokenArgs args, const TopPArgs top_p) {
  __shared__ std::uint64_t shared[kMostWarps];
  __shared__ std::uint64_t bins[kBins];
  __shared__ std::uint64_t wanted;
  __shared__ std::uint32_t high;
  __shared__ std::uint32_t low;
  __shared__ std::uint64_t chunk_sums[kThreads];
  const std::int64_t row = blockIdx.x;
  griddepcontrol_wait();
  const int place = args.places[row];
  if (place < 0) return;
  const __half* const logits = args.logits + row * args.vocabulary;
  const int first = index_of(greatest(logits, args.vocabulary, shared));
  const Chances chances{logits, to_float(logits[first]), top_p.inverse_temperature};

  __syncthreads();  // `shared` has been read by every warp
  std::uint64_t sum = 0;
  for (int i = static_cast<int>(threadIdx.x); i < args.vocabulary; i += kThreads) sum += chances.of(i);
  sum = reduce_block(sum, std::uint64_t{0}, shared, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  if (threadIdx.x == 0)  // at least 1: the nucleus is not empty
    wanted = greater(1, static_cast<std::uint64_t>(static_cast<double>(sum) * top_p.top_p));
  find_bin(chances, args.vocabulary, 8, 0, bins, wanted, high);
  find_bin(chances, args.vocabulary, 0, high, bins, wanted, low);
  const std::uint32_t least = high << 8 | low;

  // Threads take neighbouring tokens, so that the draw falls into one thread's chunk.
  const int chunk = (args.vocabulary + kThreads - 1) / kThreads;
  const int begin = static_cast<int>(threadIdx.x) * chunk;
  const int end = min(begin + chunk, args.vocabulary);
  std::uint64_t own = 0;
  for (int i = begin; i < end; ++i)
    if (order_of(logits[i]) >= least) own += chances.of(i);
  chunk_sums[threadIdx.x] = own;
  __syncthreads();
  if (threadIdx.x != 0) return;
  std::uint64_t kept = 0;
  for (const std::uint64_t chunk_sum : chunk_sums) kept += chunk_sum;
  const auto position = static_cast<std::uint64_t>(top_p.positions[top_p.tokens[row]]);
  std::uint64_t left = __umul64hi(mix_bits(top_p.keys[row] ^ mix_bits(position)), kept);  // in [0, kept)
  int at = 0;
  while (left >= chunk_sums[at]) left -= chunk_sums[at++];
  int token = at * chunk;
  for (;; ++token) {
    const std::uint64_t chance = order_of(logits[token]) >= least ? chances.of(token) : 0;
    if (left < chance) break;
    left -= chance;
  }
  args.next[place] = token;
}

}  // namespace

void launch_greedy(const NextTokenArgs& args, Stream stream) {
  launch_dependent(&greedy_kernel, dim3(static_cast<unsigned>(args.rows)), dim3(kThreads), 0, stream, args);
}

void launch_top_p(const NextTokenArgs& args, const TopPArgs& top_p, Stream stream) {
  launch_dependent(&top_p_kernel, dim3(static_cast<unsigned>(args.rows)), dim3(kThreads), 0, stream, args, top_p);
}

}  // namespace inferometer::decoder
