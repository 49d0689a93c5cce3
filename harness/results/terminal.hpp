// What a terminal can show.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "harness/results/record.hpp"

namespace inferometer {

bool is_terminal(std::FILE* stream);
bool shows_colour(std::FILE* stream);     // a terminal, and NO_COLOR is not set (no-color.org)
int terminal_columns(std::FILE* stream);  // 80 where nobody knows

std::string coloured(std::string_view text, Status status, bool colour);

std::string shown_time(double ns);                                  // "81.2 us": three figures and a fitting unit
std::string shown_rate(const Rates& rates);                         // "52.1 TFLOP/s" or "3.91 TB/s", as its limit says
std::string shortened(std::string_view text, std::size_t columns);  // ends in "..." when cut, never inside a character

// Columns that `text` takes: its code points.
std::size_t columns_of(std::string_view text);

}  // namespace inferometer
