#include "kernels/generation/record.hpp"

#include "harness/operator/cuda_check.cuh"
#include "kernels/ptx/global_timer.cuh"

namespace inferometer {
namespace {

constexpr int kThreads = 128;

__global__ void start_record_kernel(std::int32_t batch, std::int32_t new_tokens, std::int32_t* result,
                                    std::uint64_t* clock_ns) {
  result[0] = batch;
  result[1] = new_tokens;
  *clock_ns = global_timer_ns();
}

// `tokens`: of the first of the rows; `time`: two limbs, or null.
__global__ void __launch_bounds__(kThreads)
    record_kernel(const std::int32_t* next, int rows, std::int64_t pitch, std::int32_t* tokens, std::int32_t* time,
                  std::uint64_t* clock_ns) {
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += kThreads) tokens[row * pitch] = next[row];
  if (threadIdx.x != 0 || time == nullptr) return;
  const std::uint64_t now = global_timer_ns();
  const std::uint64_t ns = now - *clock_ns;
  time[0] = static_cast<std::int32_t>(ns / kTimeLimb);
  time[1] = static_cast<std::int32_t>(ns % kTimeLimb);
  *clock_ns = now;
}

}  // namespace

void launch_start_record(const GenerationProblem& p, std::int32_t* result, std::uint64_t* clock_ns, Stream stream) {
  start_record_kernel<<<1, 1, 0, stream>>>(static_cast<std::int32_t>(p.batch), static_cast<std::int32_t>(p.new_tokens),
                                           result, clock_ns);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

void launch_record(const GenerationProblem& p, const std::int32_t* next, std::int64_t first, std::int64_t rows,
                   std::int64_t index, std::int32_t* result, std::uint64_t* clock_ns, Stream stream) {
  std::int32_t* const tokens = result + p.tokens_at() + first * p.new_tokens + index;
  std::int32_t* const time = first + rows == p.batch ? result + p.times_at() + 2 * index : nullptr;
  record_kernel<<<1, kThreads, 0, stream>>>(next, static_cast<int>(rows), p.new_tokens, tokens, time, clock_ns);
  INFEROMETER_CUDA_CHECK(cudaGetLastError());
}

}  // namespace inferometer
