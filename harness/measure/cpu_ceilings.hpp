// What this machine's processors attain: reading, copying, single-precision multiply-adds.
#pragma once

#include <cstdint>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/device.hpp"

namespace inferometer {

// About 0.3 s. Each rate is that of the fastest pass: a ceiling is what can be reached.
Ceilings measure_cpu_ceilings(CpuCacheClear& cache, int threads);

// Runs `turns` turns of independent multiply-adds in the vector registers of each thread; returns the floating-point
// operations done, a multiply and an add being two.
double multiply_add(int threads, std::int64_t turns);

}  // namespace inferometer
