// Where the figures of a results file come from, and how to get them again.
#pragma once

#include <string>

#include "harness/results/report_file.hpp"

namespace inferometer {

// The command of the whole run, the machine, its ceilings and noise, and the config, folded away.
std::string provenance_details(const NamedResults& source);

}  // namespace inferometer
