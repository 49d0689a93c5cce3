// How progress names a row.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace inferometer {

class RowTexts {
 public:
  explicit RowTexts(const Sweep& sweep);
  // "operator/variant seq_len=512": with the fields that tell rows of the sweep apart, and no other.
  std::string operator()(const SweepRow& row) const;

 private:
  std::vector<std::string> fields_;
};

}  // namespace inferometer
