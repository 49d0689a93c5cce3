// Looks at every element of an output for what no answer may hold.
#pragma once

#include <cstdint>
#include <limits>

#include "harness/operator/tensor.hpp"

namespace inferometer {

struct Findings {
  std::int64_t count = 0;
  std::int64_t first = std::numeric_limits<std::int64_t>::max();  // element; meaningless when count is 0
};

struct Scan {
  Findings unwritten;    // still holds the poison of before the launch
  Findings nan;          // any other NaN
  Findings infinite;     // of either sign
  Findings overwritten;  // unused, and no longer the poison
};

// `data`: the tensor on the host. Unused elements are looked at for the poison alone. Runs at the speed of memory where
// all values are finite and none is unused. Integers have no NaN: there only the poison is found.
Scan scan_output(const TensorSpec& spec, const void* data, int threads);

}  // namespace inferometer
