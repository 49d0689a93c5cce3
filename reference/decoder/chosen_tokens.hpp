// Whether tokens are those that a decoder chooses, by the equations and by how far roundings move their logits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "reference/decoder/equations.hpp"

namespace inferometer {

// Each token of `chosen` is put behind the prompt and the tokens in front of it, whatever they are, and its logit
// compared with the greatest. f16 activations move logits, so that of two that are close either may win; how far they
// do is computed by the equations with such roundings. What is further below the greatest than that explains is wrong,
// as are tokens that lie below it by more on average. An error thus shows where it is made, and not in all that
// follows. A sentence for the first wrong token, else empty. All tokens are of the vocabulary.
std::string audit_chosen(const DecoderWeights& weights, std::span<const std::int32_t> prompt,
                         std::span<const std::int32_t> chosen, const DecoderBits& bits, int threads);

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
