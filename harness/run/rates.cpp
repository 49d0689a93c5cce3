#include "harness/run/rates.hpp"

#include <algorithm>
#include <cstdio>

namespace inferometer {
namespace {

constexpr double kNsPerSecond = 1e9;

// How far above its ceiling a rate may lie and still be believed. Memory runs at a fixed clock: reading it again gives
// the same rate, to within 5 %. The arithmetic ceiling is a library's product on a card whose clock follows its power,
// and that moves with the temperature, the work before and the bits of the operands: an H200 was seen doing the same
// products at 620 to 818 TFLOP/s. A kernel may meet a better moment than the ceiling did.
constexpr double kMemoryError = 1.05;
constexpr double kArithmeticError = 1.10;

std::optional<double> arithmetic_ceiling(Arithmetic arithmetic, const Ceilings& ceilings, bool on_gpu) {
  // Processors compute 16-bit and 8-bit products in f32 lanes; the f32 rate is their ceiling.
  if (!on_gpu || arithmetic == Arithmetic::f32) return ceilings.f32_flops_per_s;
  return arithmetic == Arithmetic::int8_matmul ? ceilings.int8_ops_per_s : ceilings.f16_flops_per_s;
}

// Least nanoseconds for `amount` at `per_s`; 0 without a ceiling.
double least_ns(double amount, const std::optional<double>& per_s) {
  return per_s && *per_s > 0 ? amount / *per_s * kNsPerSecond : 0;
}

}  // namespace

Rates rates_of(const Work& work, double ns, const Ceilings& ceilings, bool on_gpu, CacheMode cache) {
  Rates rates;
  if (!(ns > 0)) return rates;
  if (work.flops > 0) rates.flops_per_s = work.flops / ns * kNsPerSecond;
  if (work.bytes > 0) rates.bytes_per_s = work.bytes / ns * kNsPerSecond;
  const double compute_ns = least_ns(work.flops, arithmetic_ceiling(work.arithmetic, ceilings, on_gpu));
  const double memory_ns = cache == CacheMode::cold ? least_ns(work.bytes, ceilings.read_bytes_per_s) : 0;
  if (compute_ns <= 0 && memory_ns <= 0) return rates;
  rates.limit = compute_ns >= memory_ns ? "compute" : "memory";
  rates.fraction_of_ceiling = std::max(compute_ns, memory_ns) / ns;
  return rates;
}

std::string faster_than_possible(const Rates& rates) {
  const double believed = rates.limit == "compute" ? kArithmeticError : kMemoryError;
  if (!rates.fraction_of_ceiling || *rates.fraction_of_ceiling <= believed) return {};
  char text[96];
  std::snprintf(text, sizeof text, "%.3g times as fast as the %s ceiling allows", *rates.fraction_of_ceiling,
                rates.limit.c_str());
  return text;
}

}  // namespace inferometer
