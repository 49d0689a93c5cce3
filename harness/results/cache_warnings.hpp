// Which rows of a results file say "cold" and are not, as far as the checks made in its run tell.
#pragma once

#include <string>
#include <vector>

#include "harness/results/json.hpp"

namespace inferometer {

// A sentence for each device and fault: "12 rows on cpu said to be cold: the isolated times are not, ...". None where
// all is well, and none for files of earlier versions, which hold no checks. `results` has the schema
// inferometer.results/1.
std::vector<std::string> cache_warnings(const Json& results);

}  // namespace inferometer
