// Blocks of stored elements to float and back, at the speed of the machine's conversion instructions. (The harness
// converts element by element, the same on host and device.)
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Elements begin, ..., begin + count - 1 of a tensor of f16, bf16 or f32.
void load_floats(Dtype dtype, const void* tensor, std::int64_t begin, std::int64_t count, float* destination);

// Rounds to nearest even.
void store_floats(Dtype dtype, const float* source, std::int64_t count, void* tensor, std::int64_t begin);

}  // namespace inferometer
