// A part of a claim, measured: the points that its statistic makes of the evidence, and what was left out and why.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claim.hpp"
#include "harness/claims/evidence.hpp"
#include "harness/measure/statistics.hpp"

namespace inferometer {

struct ClaimPoint {
  std::string variant;
  Fields problem;  // without the field that the statistic runs along
  std::string device;
  double value = 0;
  std::optional<Interval> interval;  // 95 %, where the rows carry one
  bool simulated = false;
  bool two_devices = false;  // a ratio whose rows ran on two GPUs, or on a GPU and the processors
  std::size_t file = 0;
  bool inside = false;  // of the accepted range
};

struct Measurement {
  std::vector<ClaimPoint> points;
  std::vector<ClaimPoint> replaced;     // simulated points, where others were measured: they do not count
  std::map<std::string, int> left_out;  // why -> how many rows, or points made of several
};

// Only rows whose status is ok count. Both rows of a ratio, and all of a fit, come from one file, whose rows
// may have run on several devices of one kind. A point measured again on the same device replaces the earlier one, and
// where anything was measured, that replaces simulated points. Throws ConfigError for a condition that has no answer
// for a row (a division by zero).
Measurement measure(const ClaimPart& part, const Evidence& evidence);

}  // namespace inferometer
