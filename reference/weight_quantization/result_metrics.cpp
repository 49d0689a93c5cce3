#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/layer_source.hpp"
#include "reference/weight_quantization/result_audit.hpp"
#include "reference/weight_quantization/result_tensor.hpp"

namespace inferometer {

std::vector<Metric> result_metrics(const WeightQuantizationProblem& p, std::span<const std::int32_t> elements,
                                   int threads) {
  const MethodResult result = read_result(p, elements);
  const QuantizedWeights& q = result.quantized.weights;
  const OwnedMatrix w = layer_weights(p, threads);
  const OwnedMatrix seen = calibration_activations(p, threads);
  const OwnedMatrix held_out = held_out_activations(p, threads);
  std::vector<Metric> metrics = {{"output_rel_error", output_rel_error(q, w.view(), held_out.view(), threads)},
                                 {"calibration_rel_error", output_rel_error(q, w.view(), seen.view(), threads)},
                                 {"weight_rel_error", weight_rel_error(q, w.view(), threads)},
                                 {"weights_bits_effective", q.bits_effective()},
                                 {"seconds", result.quantized.seconds},
                                 {"calibration_seconds", result.calibration_seconds},
                                 {"warnings", static_cast<double>(result.warnings)}};
  if (result.quantized.objective) metrics.push_back({"objective", *result.quantized.objective});
  if (result.quantized.damping) metrics.push_back({"damping", *result.quantized.damping});
  return metrics;
}

std::vector<MetricInfo> result_metric_docs() {
  return {{"output_rel_error", "relative L2 error of the outputs on tokens held out of calibration"},
          {"calibration_rel_error", "the same on the tokens of calibration: what a method fits, with what it overfits"},
          {"weight_rel_error", "relative L2 error of the weights"},
          {"weights_bits_effective",
           "bits of a weight, with its share of scales, zero points and, in activation order, group numbers"},
          {"seconds", "of the method alone, calibration given, in the run that was checked"},
          {"calibration_seconds", "from the activations to H and magnitudes; 0 for methods without calibration"},
          {"objective",
           "tr(D H D^T): squared output error, summed over outputs, mean over calibration tokens; methods with "
           "calibration"},
          {"damping", "of GPTQ, as used: more than the problem's where the factorisation failed with that"},
          {"warnings", "of the method: a damping that was raised, or weights that it could only round"}};
}

}  // namespace inferometer
