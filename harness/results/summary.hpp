// What a results file says in a line for each variant.
#pragma once

#include <string>
#include <vector>

#include "harness/results/json.hpp"

namespace inferometer {

// "cuda.flash_sm80: 2.16x to 7.61x as fast as cuda.materialized, median 3.73x, over 56 problems", for each variant that
// has speed-ups over another one. `results` has the schema inferometer.results/1.
std::vector<std::string> summary_lines(const Json& results);

}  // namespace inferometer
