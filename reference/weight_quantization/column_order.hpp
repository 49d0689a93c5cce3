// In which order GPTQ takes the inputs of a layer, and which of them share a grid.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace inferometer {

// Inputs that carry much should be rounded early, while there are many others left to make up for it.
enum class ColumnOrder : std::uint8_t {
  given,        // 0, 1, 2, ...
  whole_groups  // groups of neighbours by their mean diagonal of H, falling; the inputs within each group likewise
                // by theirs: nothing needs to know of it afterwards (no g_idx)
  ,
  activation  // all inputs by their diagonal of H, falling; groups are formed in that order, so that each input has to
              // say which is its own (g_idx), unless the groups are static
};

struct ColumnPlan {
  std::vector<std::int64_t> input;  // [k] by position: which input is taken then
  std::vector<std::int64_t> group;  // [k] by position: its group
  bool needs_group_index = false;
};

// `diagonal` [k] of H. Ties go to the lower index. Static groups are always of neighbours.
ColumnPlan plan_columns(ColumnOrder order, bool static_groups, std::int64_t group_width,
                        const std::vector<double>& diagonal);

}  // namespace inferometer
