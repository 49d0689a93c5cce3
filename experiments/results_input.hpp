// Results files, and thresholds between two of them, as commands read them.
#pragma once

#include <string>

#include "harness/results/json.hpp"

namespace inferometer {

// The document in the file `path`, whatever it holds. Throws ConfigError where it cannot be read or is no JSON.
Json read_results(const std::string& path);

// "5%" or "0.05", typed after the --threshold of `command`; 1 and more only as a percentage. Throws ConfigError.
double ratio_from(const std::string& command, const std::string& typed);

}  // namespace inferometer
