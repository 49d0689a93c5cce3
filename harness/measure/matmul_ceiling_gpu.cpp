#include <algorithm>
#include <limits>

#include "harness/measure/fastest_pass.hpp"
#include "harness/measure/matmul_ceiling.hpp"
#include "harness/measure/rest.hpp"
#include "harness/measure/stopwatch.hpp"

namespace inferometer {
namespace {

constexpr int kProposals = 8;
constexpr int kTrialPasses = 3;
constexpr int kPasses = 8;

// An H200 is at its power limit after 10 ms of products. Trials last half of that, and each begins after a rest, so
// that a later proposal is not beaten by an earlier one's heat.
constexpr double kTrialRestSeconds = 0.01;
constexpr double kRestSeconds = 0.05;
constexpr double kTrialsSeconds = 0.2;  // then no further proposal is tried: the library's first choices come first

}  // namespace

std::optional<double> fastest_matmul_seconds(MatmulKind kind, int n, const void* operands, Stream stream) {
  const CublasLtMatmul matmul(kind, n, operands);
  const std::vector<cublasLtMatmulAlgo_t> proposals = matmul.proposals(kProposals);
  const auto seconds_of = [&](const cublasLtMatmulAlgo_t& algorithm, double rest_seconds, int passes) {
    rest(rest_seconds);
    return fastest_pass_seconds([&] { matmul.queue(algorithm, stream); }, passes, stream);
  };
  const cublasLtMatmulAlgo_t* best = nullptr;
  double best_seconds = std::numeric_limits<double>::infinity();
  const Stopwatch trials;
  for (const cublasLtMatmulAlgo_t& algorithm : proposals) {
    if (best != nullptr && trials.seconds() > kTrialsSeconds) break;
    const double seconds = seconds_of(algorithm, kTrialRestSeconds, kTrialPasses);
    if (seconds >= best_seconds) continue;
    best = &algorithm;
    best_seconds = seconds;
  }
  if (best == nullptr) return std::nullopt;
  return std::min(best_seconds, seconds_of(*best, kRestSeconds, kPasses));
}

}  // namespace inferometer
