// weight_quantization: what a quantiser makes of one linear layer: how far its weights and, with inputs that it was not
// calibrated on, its outputs are from full precision, at how many bits a weight and in what time.
//
// A variant is a method, its name the part behind the dot: it quantises W and writes what it made (result_tensor.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "harness/operator/dtype.hpp"

namespace inferometer {

struct WeightQuantizationProblem {
  std::string source = "synthetic";        // where the layer comes from (layer_source.hpp)
  std::string tensor;                      // of a model's files: the name of W
  std::string activations;                 // of a model's files: the safetensors file with x
  std::int64_t n = 512;                    // output features
  std::int64_t k = 512;                    // input features
  std::int64_t bits = 4;                   // of a code
  std::int64_t group_size = 128;           // weights of a row that share a grid; 0: all k
  bool symmetric = true;                   // without zero points
  Dtype scale_dtype = Dtype::f16;          // or bf16
  std::int64_t calibration_tokens = 2048;  // that methods may look at
  std::int64_t held_out_tokens = 512;      // that come after them and measure the error
  double correlation = 0.8;                // of a synthetic layer: share of an input's variance that others share
  double damping = 0.01;                   // GPTQ: added to the diagonal of H, as a share of its mean
  std::int64_t layer_seed = 1;             // of a synthetic layer

  std::int64_t groups() const { return group_size == 0 ? 1 : (k + group_size - 1) / group_size; }
};

// Dense, last index fastest.
struct WeightQuantizationTensors {
  const float* w = nullptr;        // [n, k]
  const float* x = nullptr;        // [calibration_tokens, k]
  std::int32_t* result = nullptr;  // [result_elements]  result_tensor.hpp
};

// Tried one after the other by GPTQ, those that are greater than the damping asked for, where H cannot be factorised
// with it.
inline constexpr double kGptqDampingRetries[] = {0.01, 0.1, 1.0};

// Where the parts of a result lie in its tensor (result_tensor.hpp says what they are).
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

struct WeightQuantization {
  static constexpr std::string_view kName = "weight_quantization";
  using Problem = WeightQuantizationProblem;
  using Tensors = WeightQuantizationTensors;
};

}  // namespace inferometer
