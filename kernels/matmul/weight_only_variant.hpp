// What cuda.w4a16 and cuda.w8a16 share: all but their names and the bits of a code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "harness/operator/variant.hpp"
#include "kernels/matmul/product_ends.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// A sentence for problems that the variant for codes of `bits` bits cannot do.
std::optional<std::string> weight_only_unsupported(const MatmulProblem& p, int bits);

// Packs the weights and plans the launch.
std::shared_ptr<void> prepare_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch,
                                          Allocator& allocator);

// How a state's launches end (product_ends.hpp).
enum class WeightOnlyEnd : std::uint8_t { rounded, gated, residual };

// A state for another number of tokens p.m over the weights of `packed`, itself a state for the same n, k and format:
// nothing is packed again. Other ends are for f16 and symmetric groups of 64 or more, gated for n that are multiples of
// 16, residual for multiples of 8 where has_late_norm says so: std::invalid_argument otherwise.
std::shared_ptr<void> replan_weight_only(const MatmulProblem& p, const std::shared_ptr<void>& packed,
                                         WeightOnlyEnd end = WeightOnlyEnd::rounded);

// Whether such a state can end in a residual, and a gated one take a norm late: where the fastest kernel for so many
// tokens is that of few, up to 16.
bool weight_only_has_late_norm(const MatmulProblem& p, const std::shared_ptr<void>& packed);

// What a state of either holds.
std::span<const std::byte> packed_weights(const std::shared_ptr<void>& state);

// X and Y may lie elsewhere than when the weights were packed.
void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch);

// The same for states with another end. ResidualEnd::parts is weight_only_residual_parts of the state. Throws
// std::invalid_argument for a GatedEnd's norm without has_late_norm.
void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const GatedEnd& end, const Launch& launch);
void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const ResidualEnd& end, const Launch& launch);
int weight_only_residual_parts(const std::shared_ptr<void>& state);

}  // namespace inferometer
