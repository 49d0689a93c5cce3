// Looks at every element of an output for what no answer may hold.
#pragma once

#include <cstdint>
#include <limits>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct Findings {
  std::int64_t count = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();  // element; meaningless when count is 0
};

struct Scan {
  Findings unwritten;  // all bits set: the poison of before the launch
  Findings nan;        // any other NaN
  Findings infinite;
};

// `data`: `elements` values of `dtype` on the host. Runs at the speed of memory where all values are finite.
// i32 has no NaN: there only -1, the poison, is found.
Scan scan_output(Dtype dtype, const void* data, std::int64_t elements, int threads);

}  // namespace inferometer
