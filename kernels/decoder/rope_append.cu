#include "kernels/decoder/rope_append.hpp"

#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/dependent_launch.cuh"
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

__global__ void __launch_bounds__(32 * kWarps) rope_append_kernel(const __grid_constant__ RopeAppendArgs args) {
  const int heads = args.q_heads + 2 * args.kv_heads;
  const int head = static_cast<int>(blockIdx.y) * kWarps + static_cast<int>(threadIdx.x) / 32;
  if (head >= heads) return;
  const int token = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half_dim = args.head_dim / 2;
  const int twos = half_dim / 2;  // of each half
  const bool is_q = head < args.q_heads;
  const bool is_v = head >= args.q_heads + args.kv_heads;
  const std::int64_t from = (std::int64_t{token} * heads + head) * args.head_dim;
  griddepcontrol_wait();

  Head x{};
  float squares = 0;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = lane + 32 * r;
    if (i >= twos) continue;
    x.low[r] = load_two(args.qkv + from, i);
    x.high[r] = load_two(args.qkv + from + half_dim, i);
    if (args.bias != nullptr) {
      const __half* const bias = args.bias + std::int64_t{head} * args.head_dim;
      x.low[r] = x.low[r] + load_two(bias, i);
      x.high[r] = x.high[r] + load_two(bias + half_dim, i);
    }
    squares +=
        x.low[r].x * x.low[r].x + x.low[r].y * x.low[r].y + x.high[r].x * x.high[r].x + x.high[r].y * x.high[r].y;
  }
  const int position = args.positions[token];
  if (!is_v && args.q_gain != nullptr) {  // RMSNorm of the head
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(0xffffffffU, squares, distance);
    const float inverse = rsqrtf(squares / static_cast<float>(args.head_dim) + args.eps);
    const __half* const gain = is_q ? args.q_gain : args.k_gain;
#pragma unroll
    for (int r = 0; r < kRounds; ++r) {
      const int i = lane + 32 * r;
      if (i >= twos) continue;
      x.low[r] = x.low[r] * inverse * load_two(gain, i);
      x.high[r] = x.high[r] * inverse * load_two(gain + half_dim, i);
    }
  }
  __half* to = args.q + (std::int64_t{token} * args.q_heads + head) * args.head_dim;
  if (!is_q) {
    const std::int64_t row = append_row(args, token, position);
    if (row < 0) return;
    const int kv_head = head - args.q_heads - (is_v ? args.kv_heads : 0);
    to = (is_v ? args.to.v : args.to.k) + (row * args.kv_heads + kv_head) * args.head_dim;
  }
  const float2* const turns = args.turns + std::int64_t{position < 0 ? 0 : position} * half_dim;
#pragma unroll
  for (int r = 0; r < kRounds; ++r) {
    const int i = lane + 32 * r;
    if (i >= twos) continue;
    float2 low = x.low[r];
    float2 high = x.high[r];
    if (!is_v) {
      const float2 first = __ldg(turns + 2 * i);
      const float2 second = __ldg(turns + 2 * i + 1);
      low = {x.low[r].x * first.x - x.high[r].x * first.y, x.low[r].y * second.x - x.high[r].y * second.y};
      high = {x.high[r].x * first.x + x.low[r].x * first.y, x.high[r].y * second.x + x.low[r].y * second.y};
    }
    store_two(to, i, low);
    store_two(to + half_dim, i, high);
  }
}

}  // namespace

void launch_rope_append(const RopeAppendArgs& args, Stream stream) {
  const int heads = args.q_heads + 2 * args.kv_heads;
  launch_dependent(&rope_append_kernel,
                   dim3(static_cast<unsigned>(args.tokens), static_cast<unsigned>((heads + kWarps - 1) / kWarps)),
                   dim3(32 * kWarps), 0, stream, args);
}

}  // namespace inferometer::decoder
