// What a run would do.
#pragma once

#include <vector>

#include "harness/sweep/sweep.hpp"

namespace inferometer {

// The rows of the sweeps on standard output: id, variant, problem and baseline; as one JSON array or as text.
void print_rows(const std::vector<Sweep>& sweeps, bool json);

}  // namespace inferometer
