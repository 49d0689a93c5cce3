// weight_quantization / cpu.rtn, cpu.rtn_search: rounding to nearest.
#include "reference/weight_quantization/rounding.hpp"
#include "reference/weight_quantization/variant_run.hpp"

namespace inferometer {
namespace {

template <GridChoice kChoice>
void run(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t, const Launch& launch) {
  QuantizerGrid grid = grid_of(p);
  grid.choice = kChoice;
  store_result(p, t, {.quantized = quantize_rounding(weights_of(p, t), grid, launch.threads)});
}

const RegisterVariant<WeightQuantization> rtn{{
    .name = "cpu.rtn",
    .summary = "round to nearest, the grid as wide as its group",
    .run = &run<GridChoice::range>,
}};

const RegisterVariant<WeightQuantization> rtn_search{{
    .name = "cpu.rtn_search",
    .summary = "round to nearest, the part of the range with the least squared error of the weights",
    .run = &run<GridChoice::least_squared_error>,
}};

}  // namespace
}  // namespace inferometer
