// Whether tokens are the greedy ones, by the equations of the decoder.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/decoder/equations.hpp"
#include "reference/generation/problem.hpp"

namespace inferometer {

// The prompts, [batch, prompt_tokens]: any token with equal chance.
std::vector<std::int32_t> generation_prompts(const GenerationProblem& p);

// Work of one pass of the equations over a sequence, in FLOPs; judging takes two.
double judging_flops(const GenerationProblem& p);
inline constexpr double kMostJudgingFlops = 5e13;    // a problem whose one sequence takes more is refused
inline constexpr double kEnoughJudgingFlops = 2e12;  // beyond the first sequence, no more are judged than take this

// Each token of `tokens` [batch, new_tokens] is put behind the prompt and the tokens in front of it, whatever they are,
// and its logit compared with the greatest. f16 activations move logits, so that of two that are close either may win;
// how far they do is computed by the equations with such roundings. What is further below the greatest than that
// explains is wrong, as are tokens that lie below it by more on average. An error thus shows where it is made, and not
// in all that follows. A sentence for the first wrong token, else empty. Sequences are judged from the first on. The
// last tokens that passed are remembered with their problem: a row is judged before and after timing, and other
// variants mostly give the same tokens.
std::string audit_tokens(const GenerationProblem& p, std::span<const std::int32_t> tokens, int threads);

// How far `other` is from `exact`: the root mean square of the differences over that of `exact`.
double logits_error(const DecoderMatrix& exact, const DecoderMatrix& other);

// How far below the greatest logit chosen ones may lie, over the root mean square of the logits.
struct AllowedGaps {
  double each;  // any token
  double mean;  // over `count` tokens
};
// `error`: what logits_error gives of a correct device; see the source for the derivation.
AllowedGaps allowed_gaps(double error, std::int64_t vocabulary, std::int64_t count);

// A sentence for the first row of `exact` whose chosen token lies too low, or for all of them, else empty. `in_front`:
// the token in front of each. A sequence that runs in a circle asks the same again, so that of the rows behind equal
// tokens the mean counts the first alone.
std::string audit_gaps(const DecoderMatrix& exact, std::span<const std::int32_t> in_front,
                       std::span<const std::int32_t> chosen, double error);

}  // namespace inferometer
