// What a results file says in a line for each variant.
#pragma once

#include <string>
#include <vector>

#include "harness/results/json.hpp"

namespace inferometer {

// Of a sweep with a baseline, for each variant that has speed-ups over another one: "cuda.flash_sm80: 2.16x to 7.61x as
// fast as cuda.materialized, median 3.73x, over 56 problems". Of one without, or whose rows have no work to be timed,
// for each variant that has the first of the operator's headline metrics that the file holds: "cpu.paged: kv token
// share of pool 93.1 % to 98.2 %, median 96.9 %, over 8 problems". `results` has the schema inferometer.results/1.
std::vector<std::string> summary_lines(const Json& results);

// The variant that the config of a sweep compares with; empty without one.
std::string baseline_variant(const Json& config);

}  // namespace inferometer
