#include "kernels/decoder/quantize_weights.hpp"

#include "harness/operator/cuda_check.cuh"
#include "kernels/common/half_ops.cuh"
#include "reference/decoder/problem.hpp"

namespace inferometer::decoder {
namespace {

constexpr int kWarps = 8;
constexpr int kLaneElems = static_cast<int>(kWeightGroup) / 32;
static_assert(kLaneElems == 4, "a lane loads 8 bytes and stores 4 or 2");

// A warp quantises one group of a row.
template <int kBits>
__global__ void __launch_bounds__(32 * kWarps)
    quantize_weights_kernel(const __half* w, std::int64_t n, std::int64_t k, std::uint8_t* codes, __half* scales) {
  constexpr float kLargest = kBits == 8 ? 127 : 7;
  const std::int64_t groups = (k + kWeightGroup - 1) / kWeightGroup;
  const std::int64_t number = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  if (number >= n * groups) return;
  const std::int64_t row = number / groups;
  const std::int64_t group = number % groups;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t column = group * kWeightGroup + lane * kLaneElems;
  float2 x[2] = {};
  if (column < k) {
    const uint2 bits = *reinterpret_cast<const uint2*>(w + row * k + column);
    x[0] = unpack_pair<__half>(bits.x);
    x[1] = unpack_pair<__half>(bits.y);
  }
  float most = fmaxf(fmaxf(fabsf(x[0].x), fabsf(x[0].y)), fmaxf(fabsf(x[1].x), fabsf(x[1].y)));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, distance));
  const __half scale = from_float<__half>(most / kLargest);
  const float inverse = to_float(scale) == 0 ? 0.0F : 1.0F / to_float(scale);
  if (lane == 0) scales[number] = scale;
  if (column >= k) return;
  const auto code = [&](float value) {
    return static_cast<int>(fminf(fmaxf(rintf(__fmul_rn(value, inverse)), -kLargest), kLargest));
  };
  const int q[kLaneElems] = {code(x[0].x), code(x[0].y), code(x[1].x), code(x[1].y)};
  if constexpr (kBits == 8) {
    *reinterpret_cast<char4*>(codes + row * k + column) =
        char4{static_cast<signed char>(q[0]), static_cast<signed char>(q[1]), static_cast<signed char>(q[2]),
              static_cast<signed char>(q[3])};
  } else {  // stored as q + 8, the first of two in the lower bits
    *reinterpret_cast<uchar2*>(codes + (row * k + column) / 2) =
        uchar2{static_cast<unsigned char>((q[0] + 8) | (q[1] + 8) << 4),
               static_cast<unsigned char>((q[2] + 8) | (q[3] + 8) << 4)};
  }
}

}  // namespace

void launch_quantize_weights(const __half* w, std::int64_t n, std::int64_t k, std::int64_t bits, std::uint8_t* codes,
                             __half* scales, Stream stream) {
  const std::int64_t warps = n * ((k + kWeightGroup - 1) / kWeightGroup);
  const auto blocks = static_cast<unsigned>((warps + kWarps - 1) / kWarps);
  const auto kernel = bits == 8 ? &quantize_weights_kernel<8> : &quantize_weights_kernel<4>;
  kernel<<<blocks, 32 * kWarps, 0, stream>>>(w, n, k, codes, scales);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

}  // namespace inferometer::decoder
