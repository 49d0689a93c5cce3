// weight_quantization / cpu.awq: activation-aware scales of the inputs.
#include "reference/weight_quantization/awq.hpp"
#include "reference/weight_quantization/variant_run.hpp"

namespace inferometer {
namespace {

void run(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t, const Launch& launch) {
  const AwqSettings settings{.grid = grid_of(p)};
  run_calibrated(p, t, launch.threads, [&](const FloatMatrix& weights, const Calibration& calibration) {
    return quantize_awq(weights, calibration, settings, launch.threads);
  });
}

const RegisterVariant<WeightQuantization> registered{{
    .name = "cpu.awq",
    .summary = "AWQ: scales of the inputs from 20 ratios, then clipping; 1/s is folded into what comes before",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
