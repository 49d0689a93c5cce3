// A judged part in words: what was measured, what was accepted, and at which shapes.
#pragma once

#include <string>

#include "harness/claims/verdict.hpp"

namespace inferometer {

// "2.97x", "97.2 %", "1.05": as the part's statistic and quantity have it.
std::string shown_value(const ClaimPart& part, double value);

// "at least 2.00x", "0.80 to 1.30"; empty where any value is accepted.
std::string shown_accepted(const ClaimPart& part);

// "2.11x to 7.64x, median 3.73x, over 56 cases; each +- 1.2 % (95 %)": the widest confidence interval of the points
// that have one. Empty without points.
std::string shown_measured(const JudgedPart& part);

// Where the accepted range holds, told by the field that parts the points best: "by head_dim: 64 at 48 of 48, 96 at 0
// of 2". Where all or none is inside, the extent of the fields that vary. Empty without points, or with one.
std::string where_text(const JudgedPart& part);

// What did not count: "2 rows unsupported, 1 row incorrect". Empty where all did.
std::string left_out_text(const JudgedPart& part);

// The same without the cases: "2.11x to 7.64x, median 3.73x". Empty without points.
std::string shown_extent(const JudgedPart& part);

// Likewise of the simulated points in whose place others were measured.
std::string shown_replaced(const JudgedPart& part);

// "over cuBLAS: at least 2.00x at 50 of 56 cases (1.11x to 7.64x, median 3.73x)"
std::string part_sentence(const JudgedPart& part);

}  // namespace inferometer
