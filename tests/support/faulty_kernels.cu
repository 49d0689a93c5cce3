// Variants of test_copy that run on a GPU, right and in the ways that kernels go wrong there. In gpu_tests alone.
#undef NDEBUG  // an assertion of a release build too
#include <cassert>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "tests/support/test_copy.hpp"

namespace inferometer::test {
namespace {

enum class Fault { none, illegal_address, misaligned, assertion, endless };

constexpr int kBlockThreads = 128;
constexpr std::int64_t kNowhere = std::int64_t{1} << 42;  // 16 TiB on, past the memory of any GPU

template <Fault kFault>
__global__ void copy_kernel(std::int64_t n, const float* x, float* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kBlockThreads + threadIdx.x;
  if (i >= n) return;
  if constexpr (kFault == Fault::illegal_address) y[i + kNowhere] = x[i];
  if constexpr (kFault == Fault::misaligned) *reinterpret_cast<float2*>(y + 2 * (i / 4) + 1) = {x[i], x[i]};
  if constexpr (kFault == Fault::assertion) assert(i < 0 && "the tile is too wide");
  if constexpr (kFault == Fault::endless) {  // the output holds NaN, which is unlike any number
    while (*const_cast<volatile float*>(y + i) != 0.0F) __nanosleep(1000);
  }
  y[i] = x[i];
}

template <Fault kFault>
void run(const CopyProblem& p, const CopyTensors& t, const Launch& launch) {
  const auto blocks = static_cast<unsigned>((p.n + kBlockThreads - 1) / kBlockThreads);
  copy_kernel<kFault><<<blocks, kBlockThreads, 0, launch.stream>>>(p.n, t.x, t.y);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

const RegisterVariant<Copy> copies{
    {.name = "cuda.copies", .summary = "copies on a GPU", .min_sm = 80, .run = &run<Fault::none>}};
const RegisterVariant<Copy> illegal{{.name = "cuda.illegal_address",
                                     .summary = "writes where no memory is",
                                     .min_sm = 80,
                                     .run = &run<Fault::illegal_address>}};
const RegisterVariant<Copy> misaligned{{.name = "cuda.misaligned",
                                        .summary = "writes 8 bytes at an odd multiple of 4",
                                        .min_sm = 80,
                                        .run = &run<Fault::misaligned>}};
const RegisterVariant<Copy> asserts{
    {.name = "cuda.asserts", .summary = "an assertion fails", .min_sm = 80, .run = &run<Fault::assertion>}};
const RegisterVariant<Copy> endless{
    {.name = "cuda.endless", .summary = "never ends", .min_sm = 80, .run = &run<Fault::endless>}};

}  // namespace
}  // namespace inferometer::test
