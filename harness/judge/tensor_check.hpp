// The verdict on one output tensor.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "harness/judge/judge.hpp"

namespace inferometer {

struct TensorCheck {
  std::int64_t checked = 0;  // elements compared with an expected value
  double max_abs_error = 0;
  double rel_l2_error = 0;         // over all spans
  std::int64_t worst_element = 0;  // what the complaint is about, else the element furthest off
  double excess = 0;  // the criterion that is nearest its limit, as a multiple of it; infinite for a NaN and the like
  std::string complaint;  // empty: passed
};

// Takes the spans that name this tensor. Throws std::logic_error when there are none or one does not fit.
TensorCheck check_tensor(const OutputView& output, std::span<const ExpectedSpan> expected, const Tolerance& tolerance,
                         int threads);

// Position of an element in a dense tensor, last index fastest.
std::vector<std::int64_t> index_in(const std::vector<std::int64_t>& shape, std::int64_t element);

}  // namespace inferometer
