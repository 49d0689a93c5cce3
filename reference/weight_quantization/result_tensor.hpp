// What a method made of a layer, as one tensor of integers, none of them negative (all bits set is memory that nobody
// wrote):
//   n, k, groups, whether it has a group index, whether it has input scales, number of warnings
//   objective, damping, seconds, calibration_seconds   bits of a double each, in three limbs of 22 bits, lowest first;
//                                                      NaN where there is none
//   codes         [n, k]       less the least code of the format
//   scales        [n, groups]  bits as stored
//   zeros         [n, groups]  0 if symmetric
//   group_index   [k]          i / group_size without one
//   input_scales  [k]          bits of a positive float, 1 without them
#pragma once

#include <cstdint>
#include <span>

#include "reference/weight_quantization/problem.hpp"
#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

std::int64_t result_elements(const WeightQuantizationProblem& problem);

struct MethodResult {
  QuantizerResult quantized = {};  // the text of its warnings does not travel
  double calibration_seconds = 0;  // from activations to what the method wants of them
  std::int64_t warnings = 0;
};

// Throws std::invalid_argument when the weights are not those of the problem.
void write_result(const WeightQuantizationProblem& problem, const MethodResult& result,
                  std::span<std::int32_t> elements);

// Numbers as they stand there, whatever they are. Throws std::invalid_argument where shape or code types do not hold
// them.
MethodResult read_result(const WeightQuantizationProblem& problem, std::span<const std::int32_t> elements);

}  // namespace inferometer
