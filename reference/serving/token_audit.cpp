#include <omp.h>

#include <span>
#include <string>
#include <vector>

#include "reference/decoder/chosen_tokens.hpp"
#include "reference/serving/run_audit.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostTokens = 2000;  // of the requests that are judged: some seconds

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
    for (std::size_t i = 0; i < record->outputs.size(); ++i)
      if (const std::int32_t token = record->outputs[i]; token < 0 || token >= shape.vocabulary)
        return "request " + std::to_string(request.id) + ", new token " + std::to_string(i) + ": " +
               std::to_string(token) + " is no token of the vocabulary of " + std::to_string(shape.vocabulary);
    std::vector<std::int32_t> prompt;
    make_tokens(request, 0, request.prompt, prompt);
    for (std::int32_t& token : prompt) token %= static_cast<std::int32_t>(shape.vocabulary);
    const std::string sentence = audit_chosen(weights, prompt, record->outputs,
                                              {.weights = p.weight_bits, .kv = p.kv_bits}, omp_get_num_procs());
    if (!sentence.empty()) return "request " + std::to_string(request.id) + ", " + sentence;
  }
  return {};
}

}  // namespace inferometer
