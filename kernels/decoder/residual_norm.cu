#include "kernels/decoder/residual_norm.hpp"

#include <algorithm>

#include "kernels/common/block_reduce.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/decoder/dependent_launch.cuh"
#include "kernels/ptx/griddepcontrol.cuh"

namespace inferometer::decoder {
namespace {

constexpr int kVecElems = 8;  // f16 values in one 16-byte access

struct Floats8 {
  float4 low;
  float4 high;
};

__device__ Floats8 to_floats8(const uint4& halves) {
  const float2 a = unpack_pair<__half>(halves.x);
  const float2 b = unpack_pair<__half>(halves.y);
  const float2 c = unpack_pair<__half>(halves.z);
  const float2 d = unpack_pair<__half>(halves.w);
  return {{a.x, a.y, b.x, b.y}, {c.x, c.y, d.x, d.y}};
}

__device__ float4 operator+(const float4& a, const float4& b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }
__device__ float dot(const float4& a, const float4& b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

__device__ const uint4* vectors(const __half* row) { return reinterpret_cast<const uint4*>(row); }
__device__ float4* vectors(float* row) { return reinterpret_cast<float4*>(row); }
__device__ const float4* vectors(const float* row) { return reinterpret_cast<const float4*>(row); }

// Where a row of h comes from: vector(row, hidden, i) is its elements 8 i to 8 i + 7.
struct Embed {
  const std::int32_t* ids;
  const __half* embedding;
  float* h;

  __device__ bool exists(std::int64_t) const { return true; }
  __device__ Floats8 vector(std::int64_t row, std::int64_t hidden, int i) const {
    const std::int64_t id = ids[row];
    Floats8 x{};
    if (id >= 0) x = to_floats8(__ldg(vectors(embedding + id * hidden) + i));
    vectors(h + row * hidden)[2 * i] = x.low;
    vectors(h + row * hidden)[2 * i + 1] = x.high;
    return x;
  }
};

struct Add {
  const __half* delta;
  float* h;

  __device__ bool exists(std::int64_t) const { return true; }
  __device__ Floats8 vector(std::int64_t row, std::int64_t hidden, int i) const {
    Floats8 x = to_floats8(vectors(delta + row * hidden)[i]);
    float4* const at = vectors(h + row * hidden) + 2 * i;
    x = {at[0] + x.low, at[1] + x.high};
    at[0] = x.low;
    at[1] = x.high;
    return x;
  }
};

struct Gather {
  const std::int32_t* tokens;
  const __half* delta;
  const float* h;

  __device__ bool exists(std::int64_t row) const { return tokens[row] >= 0; }
  __device__ Floats8 vector(std::int64_t row, std::int64_t hidden, int i) const {
    const std::int64_t from = std::int64_t{tokens[row]} * hidden;
    Floats8 x{};
    if (delta != nullptr) x = to_floats8(vectors(delta + from)[i]);
    return {vectors(h + from)[2 * i] + x.low, vectors(h + from)[2 * i + 1] + x.high};
  }
};

constexpr int kMostThreads = 512;
constexpr int kThreadVecs = kMostHidden / kVecElems / kMostThreads;  // of a row, in one thread

__device__ uint4 normed_vector(const Floats8& x, float inverse, const Floats8& gain) {
  return {pack_pair<__half>(x.low.x * inverse * gain.low.x, x.low.y * inverse * gain.low.y),
          pack_pair<__half>(x.low.z * inverse * gain.low.z, x.low.w * inverse * gain.low.w),
          pack_pair<__half>(x.high.x * inverse * gain.high.x, x.high.y * inverse * gain.high.y),
          pack_pair<__half>(x.high.z * inverse * gain.high.z, x.high.w * inverse * gain.high.w)};
}

// One block a row, which stays in registers between the sum of squares and the product with the gains. Gains are asked
// for before the wait: streams of weights have driven them out of the L2.
template <class Rows>
__global__ void __launch_bounds__(kMostThreads) norm_kernel(const Rows rows, const Norm norm, __half* normed) {
  __shared__ float partial[kMostWarps];
  const int vecs = norm.hidden / kVecElems;
  const std::int64_t index = blockIdx.x;
  const auto vec_of = [&](int v) { return static_cast<int>(threadIdx.x + v * blockDim.x); };
  uint4 gains[kThreadVecs];
#pragma unroll
  for (int v = 0; v < kThreadVecs; ++v)
    if (vec_of(v) < vecs) gains[v] = __ldg(vectors(norm.gain) + vec_of(v));
  griddepcontrol_wait();
  uint4* const to = reinterpret_cast<uint4*>(normed + index * norm.hidden);
  const bool exists = rows.exists(index);
  Floats8 x[kThreadVecs];
  float squares = 0;
#pragma unroll
  for (int v = 0; v < kThreadVecs; ++v) {
    if (vec_of(v) >= vecs) continue;
    x[v] = exists ? rows.vector(index, norm.hidden, vec_of(v)) : Floats8{};
    squares += dot(x[v].low, x[v].low) + dot(x[v].high, x[v].high);
  }
  const float sum = reduce_block(squares, 0.0F, partial, [](float a, float b) { return a + b; });
  const float inverse = rsqrtf(sum / static_cast<float>(norm.hidden) + norm.eps);
  if (norm.inverse != nullptr && threadIdx.x == 0) norm.inverse[index] = inverse;
#pragma unroll
  for (int v = 0; v < kThreadVecs; ++v)
    if (vec_of(v) < vecs) to[vec_of(v)] = normed_vector(x[v], inverse, to_floats8(gains[v]));
}

template <class Rows>
void launch_norm(const Rows& rows, const Norm& norm, __half* normed, std::int64_t count, Stream stream) {
  const int vecs = norm.hidden / kVecElems;
  const int threads = std::min((vecs + 31) / 32 * 32, kMostThreads);
  launch_dependent(&norm_kernel<Rows>, dim3(static_cast<unsigned>(count)), dim3(static_cast<unsigned>(threads)), 0,
                   stream, rows, norm, normed);
}

}  // namespace

void launch_embed_norm(const std::int32_t* ids, const __half* embedding, float* h, const Norm& norm, __half* normed,
                       std::int64_t tokens, Stream stream) {
  launch_norm(Embed{ids, embedding, h}, norm, normed, tokens, stream);
}

void launch_add_norm(const __half* delta, float* h, const Norm& norm, __half* normed, std::int64_t tokens,
                     Stream stream) {
  launch_norm(Add{delta, h}, norm, normed, tokens, stream);
}

void launch_gather_norm(const std::int32_t* tokens, const __half* delta, const float* h, const Norm& norm,
                        __half* normed, std::int64_t rows, Stream stream) {
  launch_norm(Gather{tokens, delta, h}, norm, normed, rows, stream);
}

}  // namespace inferometer::decoder
