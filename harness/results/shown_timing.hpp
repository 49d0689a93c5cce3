// What a table says of how far a row's time can be trusted.
#pragma once

#include <string>

#include "harness/results/record.hpp"

namespace inferometer {

// The row's time is of a warm cache although it was to be cold: its sets of inputs did not exceed the cache.
bool is_warm_in_cold_sweep(const Timing& timing);

// "3 samples, power_limited, profiler 26.5 us": what was noted while the row was timed, by the names in its `flags`,
// where few_samples has the number of them, and what a profiler says where one was asked. Empty where nothing was.
std::string shown_flags(const Record& record);

std::string shown_status(const Record& record);  // "ok", "ok (3 samples, power_limited)"

// "74 % memory", with ", warm" where the cache was warm in a cold sweep; without a ceiling "warm cache" or empty.
std::string shown_ceiling(const Record& record);

}  // namespace inferometer
