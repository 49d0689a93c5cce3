// What a terminal can show.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/record.hpp"

namespace inferometer {

bool is_terminal(std::FILE* stream);
bool shows_colour(std::FILE* stream);     // a terminal, and NO_COLOR is not set (no-color.org)
int terminal_columns(std::FILE* stream);  // 80 where nobody knows

std::string coloured(std::string_view text, Status status, bool colour);

// `value` by a printf format for one double; at most 63 characters.
std::string formatted(const char* format, double value);
std::string shown_time(double ns);                                  // "81.2 us": three figures and a fitting unit
std::string shown_bytes(double bytes);                              // "1.61 GB": powers of 1000, as the rates
std::string shown_rate(const Rates& rates);                         // "52.1 TFLOP/s" or "3.91 TB/s", as its limit says
std::string shortened(std::string_view text, std::size_t columns);  // ends in "..." when cut, never inside a character

// Cut at blanks into lines of at most `columns`; a longer word has a line for itself.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Columns that `text` takes: its code points.
std::size_t columns_of(std::string_view text);

}  // namespace inferometer
