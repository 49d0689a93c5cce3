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

// Work of judging one sequence, in FLOPs.
double judging_flops(const GenerationProblem& p);
inline constexpr double kMostJudgingFlops = 5e13;    // a problem whose one sequence takes more is refused
inline constexpr double kEnoughJudgingFlops = 2e12;  // beyond the first sequence, no more are judged than take this

// Each token of `tokens` [batch, new_tokens] is put behind the prompt and the tokens in front of it, whatever they are,
// and its logit compared with the greatest. f16 activations move logits, so that of two that are close either may win;
// what is further below the greatest than that explains is wrong. An error thus shows where it is made, and not in all
// that follows. A sentence for the first wrong token, else empty. Sequences are judged from the first on. The last
// tokens that passed are remembered with their problem: a row is judged before and after timing, and other variants
// mostly give the same tokens.
std::string audit_tokens(const GenerationProblem& p, std::span<const std::int32_t> tokens, int threads);

// How far below the greatest logit a chosen one may lie, over the root mean square of the logits.
double allowed_gap(const GenerationProblem& p);

}  // namespace inferometer
