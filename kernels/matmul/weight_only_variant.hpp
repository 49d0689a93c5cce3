// What cuda.w4a16 and cuda.w8a16 share: all but their names and the bits of a code.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "harness/operator/variant.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

// A sentence for problems that the variant for codes of `bits` bits cannot do.
std::optional<std::string> weight_only_unsupported(const MatmulProblem& p, int bits);

// Packs the weights and plans the launch.
std::shared_ptr<void> prepare_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch,
                                          Allocator& allocator);

// A state for another number of tokens p.m over the weights of `packed`, itself a state for the same n, k and format:
// nothing is packed again.
std::shared_ptr<void> replan_weight_only(const MatmulProblem& p, const std::shared_ptr<void>& packed);

// What a state of either holds.
std::span<const std::byte> packed_weights(const std::shared_ptr<void>& state);

// X and Y may lie elsewhere than when the weights were packed.
void run_weight_only(const MatmulProblem& p, const MatmulTensors& t, const Launch& launch);

}  // namespace inferometer
