#include "harness/measure/cpu_ceilings.hpp"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "harness/measure/cpu_slices.hpp"
#include "harness/measure/stopwatch.hpp"

namespace inferometer {
namespace {

// For each of the three rates. On a busy machine most passes are interrupted: then more of them, up to a limit.
constexpr double kPassesSeconds = 0.09;
constexpr double kMostPassesSeconds = 0.5;
constexpr int kLeastPasses = 20;

// The widest vector of the build's instruction set, and as many accumulators as hide the latency of a multiply-add on
// two pipes (4 cycles x 2 = 8; 5 x 2 = 10 on Skylake's wide unit) and still fit in the registers beside two operands.
#if defined(__AVX512F__)
constexpr std::size_t kVectorBytes = 64;
constexpr int kAccumulators = 24;
#elif defined(__AVX__)
constexpr std::size_t kVectorBytes = 32;
constexpr int kAccumulators = 12;
#else
constexpr std::size_t kVectorBytes = 16;
constexpr int kAccumulators = 12;
#endif
using Vector [[gnu::vector_size(kVectorBytes)]] = float;
constexpr int kLanes = kVectorBytes / sizeof(float);

// Seconds of the fastest pass.
double fastest(const std::function<void()>& pass) {
  double best = 1e30;
  double total = 0;
  for (int passes = 0; total < (passes < kLeastPasses ? kMostPassesSeconds : kPassesSeconds); ++passes) {
    const Stopwatch watch;
    pass();
    const double seconds = watch.seconds();
    best = std::min(best, seconds);
    total += seconds;
  }
  return best;
}

void copy_slices(std::span<std::byte> destination, std::span<const std::byte> source, int threads) {
#pragma omp parallel num_threads(threads)
  {
    const int thread = omp_get_thread_num();
    const int team = omp_get_num_threads();
    const auto to = thread_slice(destination, thread, team);
    const auto from = thread_slice(source, thread, team);
    std::memcpy(to.data(), from.data(), to.size());
  }
}

// All threads compute at once; each reports its own fastest pass.
double multiply_add_rate(int threads) {
  constexpr std::int64_t kTurns = 100'000;  // some 0.3 ms: shorter than a scheduler's slice
  double rate = 0;
#pragma omp parallel num_threads(threads) reduction(+ : rate)
  {
    double best = 0;
    const Stopwatch all;
    do {
      const Stopwatch watch;
      const double operations = multiply_add(kTurns);
      best = std::max(best, operations / watch.seconds());
    } while (all.seconds() < kPassesSeconds);
    rate += best;
  }
  return rate;
}

}  // namespace

double multiply_add(std::int64_t turns) {
  // Volatile, so that the compiler knows neither operand and must keep the result. A fixed point at 1: nothing
  // overflows or becomes subnormal.
  volatile float factor_source = 0.9999F;
  volatile float term_source = 0.0001F;
  const Vector factor = Vector{} + factor_source;
  const Vector term = Vector{} + term_source;
  Vector accumulators[kAccumulators];
  for (int i = 0; i < kAccumulators; ++i) accumulators[i] = Vector{} + static_cast<float>(i);
  for (std::int64_t turn = 0; turn < turns; ++turn) {
#pragma GCC unroll 24  // all of them, so that each stays in its register
    for (Vector& accumulator : accumulators) accumulator = accumulator * factor + term;
  }
  Vector sum{};
  for (const Vector& accumulator : accumulators) sum += accumulator;
  volatile float sink = 0;
  for (int lane = 0; lane < kLanes; ++lane) sink = sink + sum[lane];
  return 2.0 * kLanes * kAccumulators * static_cast<double>(turns);
}

Ceilings measure_cpu_ceilings(CpuCacheClear& cache, int threads) {
  Ceilings ceilings;
  ceilings.f32_flops_per_s = multiply_add_rate(threads);
  std::span<std::byte> buffer;
  try {
    buffer = cache.buffer();
  } catch (const OutOfMemory&) {
    return ceilings;  // in a smaller buffer it would be the cache that is measured
  }
  const std::span<std::byte> lower = buffer.first(buffer.size() / 2);
  const std::span<std::byte> upper = buffer.subspan(lower.size(), lower.size());
  ceilings.read_bytes_per_s = static_cast<double>(buffer.size()) / fastest([&] { cache.clear(); });
  ceilings.copy_bytes_per_s =
      2.0 * static_cast<double>(lower.size()) / fastest([&] { copy_slices(upper, lower, threads); });
  return ceilings;
}

}  // namespace inferometer
