#include "reference/serving/requests.hpp"

#include <algorithm>
#include <cmath>

#include "harness/operator/generate.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/serving/problem.hpp"

namespace inferometer {
namespace {

constexpr std::uint64_t kArrivalStream = 3;  // not one of make_tokens'
constexpr double kMsPerS = 1e3;

// Gaps of a Poisson process are exponential.
double gap_ms(const ServingProblem& p, std::int64_t request) {
  const std::uint64_t key = stream_key(static_cast<std::uint64_t>(p.trace_seed), kArrivalStream);
  const std::uint64_t bits = mix_bits(key + static_cast<std::uint64_t>(request)) >> 11;
  const double uniform = (static_cast<double>(bits) + 0.5) * 0x1p-53;  // in (0, 1)
  return -std::log(uniform) * kMsPerS / p.rate;
}

}  // namespace

std::vector<KvRequest> served_requests(const ServingProblem& p) {
  KvMemoryProblem source{.trace = p.trace, .requests = p.requests, .arrivals = "all_at_start"};
  source.max_length = p.max_length;
  source.trace_seed = p.trace_seed;
  if (p.arrivals == "trace") source.arrivals = "trace";
  const auto requests = open_requests(source);
  std::vector<KvRequest> served;
  double arrival_ms = 0;
  for (KvRequest request; requests->next(request);) {
    request.prompt = std::min(request.prompt, p.max_prompt);
    request.output = std::min(request.output, p.max_output);
    const auto blocks = static_cast<std::size_t>((request.prompt + kHashBlockTokens - 1) / kHashBlockTokens);
    request.hash_ids.resize(std::min(request.hash_ids.size(), blocks));
    if (p.arrivals == "poisson") arrival_ms += gap_ms(p, request.id);
    if (p.arrivals == "trace") arrival_ms = request.arrival_ms / p.rate;
    request.arrival_ms = arrival_ms;
    served.push_back(request);
  }
  return served;
}

std::int64_t arrival_ns(const KvRequest& request) { return std::llround(1e6 * request.arrival_ms); }

}  // namespace inferometer
