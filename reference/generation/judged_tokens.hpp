// Whether tokens are the greedy ones, by the equations of the decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/generation/problem.hpp"

namespace inferometer {

// The prompts, [batch, prompt_tokens]: any token with equal chance.
std::vector<std::int32_t> generation_prompts(const GenerationProblem& p);

// Work of one pass of the equations over a sequence, in FLOPs; judging takes two.
double judging_flops(const GenerationProblem& p);
inline constexpr double kMostJudgingFlops = 5e13;    // a problem whose one sequence takes more is refused
inline constexpr double kEnoughJudgingFlops = 2e12;  // beyond the first sequence, no more are judged than take this

// Each token of `tokens` [batch, new_tokens] by audit_chosen: a sentence for the first wrong one, else empty. Sequences
// are judged from the first on. The last tokens that passed are remembered with their problem: a row is judged before
// and after timing, and other variants mostly give the same tokens.
std::string audit_tokens(const GenerationProblem& p, std::span<const std::int32_t> tokens, int threads);

}  // namespace inferometer
