// Figures of single rows: a quantity, and its ratio to the row's counterpart.
#pragma once

#include <optional>

#include "harness/claims/claim.hpp"
#include "harness/claims/evidence.hpp"
#include "harness/measure/statistics.hpp"

namespace inferometer {

struct Figure {
  double value = 0;
  std::optional<Interval> interval;
  bool simulated = false;
  bool two_devices = false;  // of the two rows of a ratio
};

// None where the row has no such figure, or one that is not finite.
std::optional<Figure> figure_of(const Quantity& quantity, const EvidenceRow& row);

// The ok row that `row` is set against; null where there is none, or none that is ok.
const EvidenceRow* counterpart_of(const ClaimPart& part, const EvidenceRow& row, const Evidence& evidence);

// `over` in `of`'s place is the divisor. Times are compared by the estimator that both have (results_file.hpp).
std::optional<Figure> ratio_of(const Quantity& quantity, const EvidenceRow& of, const EvidenceRow& over);

}  // namespace inferometer
