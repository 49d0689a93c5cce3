// Adding what varies to a config, so that no field is given twice.
#pragma once

#include <vector>

#include "harness/sweep/config.hpp"

namespace inferometer {

// Throws ConfigError when a setting of `added` sets a field that another one sets.
void add_dimension(std::vector<Dimension>& dimensions, Dimension added, const Operator& op);

// The same, but settings whose fields are all set by `added` give way to it, and it takes the place of the first
// dimension that it replaces whole.
void replace_dimension(std::vector<Dimension>& dimensions, Dimension added, const Operator& op);

}  // namespace inferometer
