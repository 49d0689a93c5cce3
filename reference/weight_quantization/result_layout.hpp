// Where the parts of a result lie in its tensor (result_tensor.hpp says what they are).
#pragma once

#include <cstdint>

#include "reference/weight_quantization/problem.hpp"

namespace inferometer {

inline constexpr int kResultLimbs = 3;      // of a double
inline constexpr int kResultLimbBits = 22;  // lowest first; the last has what is left of 64

// Element numbers.
struct ResultLayout {
  static constexpr std::int64_t kShape = 0;  // n, k, groups
  static constexpr std::int64_t kHasGroupIndex = 3;
  static constexpr std::int64_t kHasInputScales = 4;
  static constexpr std::int64_t kWarnings = 5;
  static constexpr std::int64_t kObjective = 6;
  static constexpr std::int64_t kDamping = kObjective + kResultLimbs;
  static constexpr std::int64_t kSeconds = kDamping + kResultLimbs;
  static constexpr std::int64_t kCalibrationSeconds = kSeconds + kResultLimbs;
  static constexpr std::int64_t kCodes = kCalibrationSeconds + kResultLimbs;

  std::int64_t scales;
  std::int64_t zeros;
  std::int64_t group_index;
  std::int64_t input_scales;
  std::int64_t elements;

  explicit ResultLayout(const WeightQuantizationProblem& p)
      : scales(kCodes + p.n * p.k),
        zeros(scales + p.n * p.groups()),
        group_index(zeros + p.n * p.groups()),
        input_scales(group_index + p.k),
        elements(input_scales + p.k) {}
};

}  // namespace inferometer
