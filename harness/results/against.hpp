// A run set against an earlier results file while it measures: which rows of that file stand against its own, and what
// came of it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/compare.hpp"
#include "harness/results/results_file.hpp"

namespace inferometer {

struct Against {
  std::string path;  // of the earlier file
  Json base;         // its contents
  double threshold = 0.05;
};

// For the rows of `sweep` that the file does not hold as they are: the row of the same problem whose variant the file
// measured, to be measured again beside it. Of several variants the file's baseline counts, else none does. Variants
// that this program has not built are left out. By the id of the sweep's row. Throws std::runtime_error for what is no
// results file.
std::map<std::string, SweepRow> rows_to_interleave(const Sweep& sweep, const Json& base);

// Two measurements of one row, as one: medians averaged, and an interval that holds the drift between them. One that
// failed, or was suspect, stands for both.
Record combined(const Record& first, const Record& second);

// Rows that were interleaved against what their counterparts took beside them (`interleaved`, by the id of the sweep's
// row), others against what the file says. Rows that neither has are `added`; what the file has beyond is left out.
Comparison compare_against(const Against& against, const Json& results, const RecordsById& interleaved);

}  // namespace inferometer
