// A comparison as text, for a terminal or as Markdown.
#pragma once

#include <string>

#include "harness/results/compare.hpp"

namespace inferometer {

struct CompareText {
  bool markdown = false;
  bool all_rows = false;  // those that stayed the same too
};

// What was compared and by which measure, the rows with the worst first, and how many of each verdict there are.
std::string comparison_text(const Comparison& comparison, const CompareText& how);

}  // namespace inferometer
