// The result table: one line a row, failed and unsupported rows too.
#pragma once

#include <string>

#include "harness/results/results_file.hpp"

namespace inferometer {

// Fields that all rows share stand once above; a column for each that varies and for each headline metric. `columns` is
// the width of the terminal: reasons are cut to it; 0: never cut.
std::string result_table(const Sweep& sweep, const RecordsById& records, bool colour, std::size_t columns);

}  // namespace inferometer
