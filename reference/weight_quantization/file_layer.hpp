// A layer from files: its weights a tensor of a model, the activations that enter it a tensor of a file of its own, as
// `inferometer quantize --calibration` takes it (docs/quantize.md).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "reference/weight_quantization/layer_source.hpp"
#include "reference/weight_quantization/problem.hpp"

namespace inferometer {

struct LayerShapeInFile {
  std::int64_t n = 0;  // output features
  std::int64_t k = 0;  // input features
};

// Of the tensor `problem.tensor` of `problem.source`. Throws CheckpointError with file, tensor and reason: a file that
// cannot be read, a tensor that is not there, or is no matrix of F16, BF16 or F32.
LayerShapeInFile layer_shape_in_file(const WeightQuantizationProblem& problem);

// Throws CheckpointError likewise, and for activations that are absent, of another k, or fewer tokens than the problem
// asks for. Its rows throw it for values that are not finite.
std::shared_ptr<const LayerSource> open_file_layer(const WeightQuantizationProblem& problem);

}  // namespace inferometer
