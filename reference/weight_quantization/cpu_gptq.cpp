// weight_quantization / cpu.gptq and its orders.
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/variant_run.hpp"

namespace inferometer {
namespace {

template <ColumnOrder kOrder, GridChoice kChoice = GridChoice::range>
void run(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t, const Launch& launch) {
  GptqSettings settings{.grid = grid_of(p), .damping = p.damping, .order = kOrder};
  settings.grid.choice = kChoice;
  run_calibrated(p, t, launch.threads, [&](const FloatMatrix& weights, const Calibration& calibration) {
    return quantize_gptq(weights, calibration, settings, launch.threads);
  });
}

const RegisterVariant<WeightQuantization> gptq{{
    .name = "cpu.gptq",
    .summary = "GPTQ, inputs in their given order",
    .run = &run<ColumnOrder::given>,
}};

const RegisterVariant<WeightQuantization> gptq_group_order{{
    .name = "cpu.gptq_group_order",
    .summary = "GPTQ, groups and the inputs within them by activation; needs no g_idx",
    .run = &run<ColumnOrder::whole_groups>,
}};

const RegisterVariant<WeightQuantization> gptq_search{{
    .name = "cpu.gptq_search",
    .summary = "cpu.gptq_group_order on grids of the part of the range with the least squared error of the weights",
    .run = &run<ColumnOrder::whole_groups, GridChoice::least_squared_error>,
}};

const RegisterVariant<WeightQuantization> gptq_act_order{{
    .name = "cpu.gptq_act_order",
    .summary = "GPTQ, all inputs by activation (act-order, desc_act); needs g_idx",
    .run = &run<ColumnOrder::activation>,
}};

}  // namespace
}  // namespace inferometer
