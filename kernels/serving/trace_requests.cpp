#include "kernels/serving/trace_requests.hpp"

#include <cmath>
#include <string>

#include "harness/operator/fields.hpp"

namespace inferometer {

ServingRequest serving_request(const KvRequest& request, double rate, TokenId vocabulary) {
  if (!std::isfinite(rate) || rate < 0)
    throw ProblemError("rate", "rate must be finite and not negative, got " + std::to_string(rate));
  if (vocabulary < 1)
    throw ProblemError("vocabulary", "vocabulary must be at least 1, got " + std::to_string(vocabulary));
  ServingRequest result{.id = request.id,
                        .arrival_ns = rate == 0 ? 0 : std::llround(1e6 * request.arrival_ms / rate),
                        .prompt = {},
                        .max_new = request.output};
  make_tokens(request, 0, request.prompt, result.prompt);
  for (TokenId& token : result.prompt) token %= vocabulary;
  return result;
}

}  // namespace inferometer
