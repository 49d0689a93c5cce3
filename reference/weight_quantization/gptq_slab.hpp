// The columns of some rows: the inner loops of GPTQ.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/weight_quantization/column_order.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {

inline constexpr std::int64_t kGptqSlab = 64;  // rows: their weights stay in cache while U passes

// Rounds rows [first, first + count) of `weights`, whose inputs with live[input] false count as 0, and fills in codes
// and grids of `made`. U [k, k] by position. Returns the sum of all e_i^2.
double gptq_slab(const FloatMatrix& weights, const GptqSettings& settings, const ColumnPlan& plan,
                 const std::vector<bool>& live, const ConstSquare& u, std::int64_t first, std::int64_t count,
                 QuantizedWeights& made);

}  // namespace inferometer
