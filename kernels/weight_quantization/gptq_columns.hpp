// The columns of GPTQ on the device: rounding, and what it moves in the columns behind.
#pragma once

#include <cstdint>

#include "harness/operator/variant.hpp"
#include "kernels/weight_quantization/gptq_workspace.hpp"

namespace inferometer {

// How many columns the block at `begin` has: up to kBlockColumns. A group's grid comes from weights that all columns
// before it have updated, so a block ends with a group, unless it lies within one.
constexpr std::int64_t gptq_block_width(std::int64_t k, std::int64_t group_width, std::int64_t begin) {
  const std::int64_t in_group = group_width - begin % group_width;
  const std::int64_t whole_groups = in_group >= kBlockColumns ? 0 : (kBlockColumns - in_group) / group_width;
  const std::int64_t most = in_group >= kBlockColumns ? kBlockColumns : in_group + whole_groups * group_width;
  return begin + most < k ? most : k - begin;
}

// Quantises W with U in memory.h (inverse_factor.hpp): codes, scales and zeros of the result, memory.row_squares and
// memory.row_changes.
void launch_gptq_columns(const WeightQuantizationProblem& p, const WeightQuantizationTensors& t,
                         const GptqWorkspace& memory, Stream stream);

}  // namespace inferometer
