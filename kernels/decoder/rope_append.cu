#include "kernels/decoder/rope_append.hpp"

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/matmul/product_ends.cuh"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kWarps = 4;  // of a block, each with a head of a token

constexpr int kRounds = kMostHeadDim / 2 / 64;

// Elements 2 i, 2 i + 1 of a row.
__device__ float2 load_two(const __half* row, int i) {
  return unpack_pair<__half>(reinterpret_cast<const std::uint32_t*>(row)[i]);
}
__device__ void store_two(__half* row, int i, float2 x) {
  reinterpret_cast<std::uint32_t*>(row)[i] = pack_pair<__half>(x.x, x.y);
}
__device__ float2 operator+(float2 a, float2 b) { return {a.x + b.x, a.y + b.y}; }
__device__ float2 operator*(float2 a, float2 b) { return {a.x * b.x, a.y * b.y}; }
__device__ float2 operator*(float2 a, float b) { return {a.x * b, a.y * b}; }

// Row of the cache, or of the dense k and v; negative: none.
__device__ std::int64_t append_row(const RopeAppendArgs& args, int token, int position) {
  if (args.to.table == nullptr) return token;
  if (position < 0) return -1;
  const std::uint32_t page = args.to.block_size.quotient(static_cast<std::uint32_t>(position));
  const std::int64_t block = args.to.table[std::int64_t{args.to.rows[token]} * args.to.max_blocks + page];
  return block * args.to.block_size.divisor() +
         args.to.block_size.remainder(static_cast<std::uint32_t>(position), page);
}

// The two halves of a head: a lane has elements 2 i, 2 i + 1 of each, i = lane + 32 r. RoPE turns x[j] with
// x[j + head_dim / 2].
struct Head {
  float2 low[kRounds];
  float2 high[kRounds];
};

// What a lane multiplies its elements with; weights, tables and the step's inputs, and so there before the product.
struct Factors {
  Head bias;
  Head gain;
  float2 turns[kRounds][2];  // cosine and sine for elements 2 i and 2 i + 1
};

__device__ Head load_head(const __half* row, int half_dim, int lane) {
  Head x{};
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = lane + 32 * r;
    if (i >= half_dim / 2) continue;
    x.low[r] = load_two(row, i);
    x.high[r] = load_two(row + half_dim, i);
  }
  return x;
}

__global__ void __launch_bounds__(32 * kWarps) rope_append_kernel(const __grid_constant__ RopeAppendArgs args) {
  const int heads = args.q_heads + 2 * args.kv_heads;
  const int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
  if (head >= heads) return;
  const int token = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half_dim = args.head_dim / 2;
  const bool is_q = head < args.q_heads;
  const bool is_v = head >= args.q_heads + args.kv_heads;
  const bool has_norm = !is_v && args.q_gain != nullptr;
  const auto for_lane = [&](const auto& body) {
#pragma unroll
    for (int r = 0; r < kRounds; ++r)
      if (lane + 32 * r < half_dim / 2) body(r, lane + 32 * r);
  };

  const int position = args.positions[token];
  std::int64_t row = 0;
  if (!is_q) row = append_row(args, token, position);
  Factors factors{};
  if (args.bias != nullptr) factors.bias = load_head(args.bias + std::int64_t{head} * args.head_dim, half_dim, lane);
  if (has_norm) factors.gain = load_head(is_q ? args.q_gain : args.k_gain, half_dim, lane);
  const float2* const turns = args.turns + std::int64_t{position < 0 ? 0 : position} * half_dim;
  if (!is_v)
    for_lane([&](int r, int i) {
      factors.turns[r][0] = __ldg(turns + 2 * i);
      factors.turns[r][1] = __ldg(turns + 2 * i + 1);
    });
  griddepcontrol_wait();

  Head x = load_head(args.qkv + (std::int64_t{token} * heads + head) * args.head_dim, half_dim, lane);
  const float late = late_norm_factor(args.norm, token, head == 0);  // its loads fly beside those of x
  float squares = 0;
  for_lane([&](int r, int) {
    x.low[r] = x.low[r] * late + factors.bias.low[r];
    x.high[r] = x.high[r] * late + factors.bias.high[r];
    const float2 square = x.low[r] * x.low[r] + x.high[r] * x.high[r];
    squares += square.x + square.y;
  });
  if (has_norm) {  // RMSNorm of the head
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(0xffffffffU, squares, distance);
    const float inverse = rsqrtf(squares / static_cast<float>(args.head_dim) + args.eps);
    for_lane([&](int r, int) {
      x.low[r] = x.low[r] * inverse * factors.gain.low[r];
      x.high[r] = x.high[r] * inverse * factors.gain.high[r];
    });
  }
  __half* to = args.q + (std::int64_t{token} * args.q_heads + head) * args.head_dim;
  if (!is_q) {
    if (row < 0) return;
    const int kv_head = head - args.q_heads - (is_v ? args.kv_heads : 0);
    to = (is_v ? args.to.v : args.to.k) + (row * args.kv_heads + kv_head) * args.head_dim;
  }
  for_lane([&](int r, int i) {
    const float2 a = x.low[r];
    const float2 b = x.high[r];
    const float2 first = factors.turns[r][0];
    const float2 second = factors.turns[r][1];
    store_two(to, i, is_v ? a : float2{a.x * first.x - b.x * first.y, a.y * second.x - b.y * second.y});
    store_two(to + half_dim, i, is_v ? b : float2{b.x * first.x + a.x * first.y, b.y * second.x + a.y * second.y});
  });
}

}  // namespace

void launch_rope_append(const RopeAppendArgs& args, Stream stream) {
  const int heads = args.q_heads + 2 * args.kv_heads;
  launch_dependent(&rope_append_kernel,
                   dim3(static_cast<unsigned>(args.tokens), static_cast<unsigned>((heads + kWarps - 1) / kWarps)),
                   dim3(32 * kWarps), 0, stream, args);
}

}  // namespace inferometer::decoder
