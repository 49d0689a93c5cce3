// Decides whether outputs are right: written everywhere, and equal to the sampled reference within tolerance.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "harness/operator/operator.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

// One output tensor as read back from the device.
struct OutputView {
  const TensorSpec* spec = nullptr;
  const void* data = nullptr;
};

// `expected` spans and `tolerance` come from the operator. Never throws for wrong outputs: the answer is in the Check.
Check judge(std::span<const OutputView> outputs, std::span<const ExpectedSpan> expected,
            const std::function<Tolerance(std::string_view tensor)>& tolerance, std::string_view reference,
            int threads);

}  // namespace inferometer
