// "measure" and "limits" of a config, and their keys on the command line.
#pragma once

#include <string>
#include <vector>

#include "harness/measure/timing.hpp"
#include "harness/sweep/cursor.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

std::vector<std::string> measure_keys();
std::vector<std::string> limit_keys();

// `key` is one of the above. Throws ConfigError, at the value's place, for a value out of range.
void set_measure(MeasureConfig& measure, const std::string& key, const Cursor& value);
void set_limit(Limits& limits, const std::string& key, const Cursor& value);

// Conditions between keys, once all are set.
void check_measure(const MeasureConfig& measure, const std::string& place);

}  // namespace inferometer
