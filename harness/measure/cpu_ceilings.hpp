// What this machine's processors attain: reading, copying, single-precision multiply-adds.
#pragma once

#include <cstdint>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/device.hpp"

namespace inferometer {

// About 0.3 s. Each rate is that of the fastest pass: a ceiling is what can be reached. Arithmetic is the sum of each
// thread's own fastest pass, so that a neighbour's work on one processor does not lower it.
Ceilings measure_cpu_ceilings(CpuCacheClear& cache, int threads);

// Runs `turns` turns of independent multiply-adds in the calling thread's vector registers; returns the floating-point
// operations done, a multiply and an add being two.
double multiply_add(std::int64_t turns);

}  // namespace inferometer
