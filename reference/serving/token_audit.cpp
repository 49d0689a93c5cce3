#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "reference/decoder/equations.hpp"
#include "reference/serving/run_audit.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostTokens = 2000;  // of the requests that are judged: some seconds

// How far below the greatest logit the chosen one may lie. Activations in f16 move the logits of small shapes by some
// 0.003; where they move a key or value across the edge of a code, it changes by a whole step of 1/127 or 1/7 of the
// head's greatest.
double tolerance(const ServingProblem& p) { return p.kv_bits == 16 ? 0.01 : p.kv_bits == 8 ? 0.02 : 0.1; }

}  // namespace

std::string audit_tokens(const ServingProblem& p, const ServingRun& run) {
  const DecoderShape& shape = decoder_shape(p.model);
  const SeededWeights weights(shape, kServingWeightSeed);
  std::int64_t judged = 0;
  for (const KvRequest& request : served_requests(p)) {
    const auto& record = run.requests[static_cast<std::size_t>(request.id)];
    if (!record || record->outputs.empty()) continue;
    const std::int64_t length = request.prompt + request.output;
    if (judged > 0 && judged + length > kMostTokens) break;  // one is always judged
    judged += length;
    const auto name = [&](std::size_t output) {
      return "output " + std::to_string(output) + " of request " + std::to_string(request.id);
    };
    for (std::size_t i = 0; i < record->outputs.size(); ++i)
      if (const std::int32_t token = record->outputs[i]; token < 0 || token >= shape.vocabulary)
        return name(i) + " is " + std::to_string(token) + ", no token of " + std::to_string(shape.vocabulary);
    std::vector<std::int32_t> tokens;
    make_tokens(request, 0, request.prompt, tokens);
    for (std::int32_t& token : tokens) token %= static_cast<std::int32_t>(shape.vocabulary);
    tokens.insert(tokens.end(), record->outputs.begin(), record->outputs.end() - 1);
    const DecoderMatrix logits = decoder_logits(weights, tokens, {.weights = p.weight_bits, .kv = p.kv_bits});
    for (std::size_t i = 0; i < record->outputs.size(); ++i) {
      const auto row = logits.row(request.prompt - 1 + static_cast<std::int64_t>(i));
      if (const double below = row.maxCoeff() - row[record->outputs[i]]; !(below <= tolerance(p)))  // NaN too
        return name(i) + " has a logit " + std::to_string(below) + " below the greatest, " +
               std::to_string(tolerance(p)) + " allowed";
    }
  }
  return {};
}

}  // namespace inferometer
