// A generation's result as the GPU writes it, token by token (reference/generation/problem.hpp).
#pragma once

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "reference/generation/problem.hpp"

namespace inferometer {

// Writes the shape and starts the clock: `clock_ns` is where the time of the last token is kept.
void launch_start_record(const GenerationProblem& p, std::int32_t* result, std::uint64_t* clock_ns, Stream stream);

// New token `index` of sequences [first, first + rows) from `next` [rows]. With the last sequence the time is taken.
void launch_record(const GenerationProblem& p, const std::int32_t* next, std::int64_t first, std::int64_t rows,
                   std::int64_t index, std::int32_t* result, std::uint64_t* clock_ns, Stream stream);

}  // namespace inferometer
