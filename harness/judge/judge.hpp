// Decides whether outputs are right: written everywhere, and equal to the sampled reference within tolerance.
//
// Every element of every output is looked at: none may still hold the poison or be NaN, but the unused ones, which must
// hold the poison. A tensor whose expected values are all finite may hold no infinity anywhere; so a sample takes in a
// row of each kind that has one.
// Elements with an expected value are compared as Tolerance says.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "harness/operator/operator.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

// One output tensor as read back from the device.
struct OutputView {
  const TensorSpec* spec = nullptr;
  const void* data = nullptr;
};

// `expected` spans and `tolerance` come from the operator. Never throws for wrong outputs: the answer is in the Check,
// which speaks of the tensor that is furthest from (or beyond) its tolerance. Throws std::logic_error when the spans
// fit no output or an output has no span. threads 0: as many as there are processors.
Check judge(std::span<const OutputView> outputs, std::span<const ExpectedSpan> expected,
            const std::function<Tolerance(std::string_view tensor)>& tolerance, std::string_view reference,
            int threads);

}  // namespace inferometer
