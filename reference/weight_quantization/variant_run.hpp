// From the tensors of a row to a quantiser and back: the whole of a variant's run().
#pragma once

#include <span>

#include "harness/operator/variant.hpp"
#include "reference/weight_quantization/problem.hpp"
#include "reference/weight_quantization/quantizer.hpp"
#include "reference/weight_quantization/result_tensor.hpp"

namespace inferometer {

inline QuantizerGrid grid_of(const WeightQuantizationProblem& p) {
  return {.format = {.bits = p.bits, .symmetric = p.symmetric, .scale_dtype = p.scale_dtype},
          .group_size = p.group_size};
}

inline FloatMatrix weights_of(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t) {
  return {t.w, p.n, p.k};
}

inline void store_result(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t,
                         const MethodResult& result) {
  write_result(p, result, {t.result, static_cast<std::size_t>(result_elements(p))});
}

// quantize(weights, calibration) with what the problem's activations say.
template <class Quantize>
void run_calibrated(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t, int threads,
                    const Quantize& quantize) {
  MethodResult result;
  const QuantizerClock clock;
  const Calibration calibration = calibrate({t.x, p.calibration_tokens, p.k}, threads);
  result.calibration_seconds = clock.seconds();
  result.quantized = quantize(weights_of(p, t), calibration);
  store_result(p, t, result);
}

}  // namespace inferometer
