#include "reference/decoder/chosen_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

namespace inferometer {
namespace {

// What a correct device is at least granted, however few tokens tell of its error: the roundings of some ten tensors a
// layer, each 2^-11 / sqrt(3) of the tensor on average and all independent, and codes on the other side of a tie as
// they are on the tiny shape (tests/kernels/decoder/logits_gpu_test.cpp).
double least_error(const DecoderShape& shape, std::int64_t kv_bits) {
  const double rounding = 0x1p-11 / std::sqrt(3.0) * std::sqrt(10.0 * static_cast<double>(shape.layers));
  const double codes = kv_bits == 16 ? 0 : kv_bits == 8 ? 5e-3 : 2e-2;
  return std::hypot(rounding, codes);
}

}  // namespace

std::string audit_chosen(const DecoderWeights& weights, std::span<const std::int32_t> prompt,
                         std::span<const std::int32_t> chosen, const DecoderBits& bits, int threads) {
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());
  all.insert(all.end(), chosen.begin(), chosen.end() - 1);
  const auto skipped = std::ssize(prompt) - 1;
  const DecoderMatrix exact = decoder_logits(weights, all, bits, skipped, threads);
  DecoderBits device = bits;
  device.activations = 16;
  const DecoderMatrix rounded = decoder_logits(weights, all, device, skipped, threads);
  const double error = std::max(least_error(weights.shape(), bits.kv), logits_error(exact, rounded));
  return audit_gaps(exact, std::span<const std::int32_t>(all).last(chosen.size()), chosen, error);
}

double logits_error(const DecoderMatrix& exact, const DecoderMatrix& other) {
  return (other - exact).norm() / exact.norm();
}

// With `error` e and logits of deviation 1:
//
// - Two logits err, sqrt(2) e, and of thousands the worst is four to five deviations off: 8 e for each.
// - On average the choice by logits with independent errors costs lambda e^2 / 2, lambda = sqrt(2 ln vocabulary): near
//   the greatest of normal values their density falls by the factor exp(-lambda x), so that winners have errors of mean
//   lambda e^2, while the greatest sum rises by half as much. The root mean square of the costs is sqrt(lambda e^3):
//   the share of tokens that differ is about lambda e, each by about e. The mean of `count` may be four of its
//   deviations above, and one token more may lie at the limit for each, which is what makes a mean of few.
// - With codes of 4 bits one set of roundings tells the error of another only within a factor of two, which the mean
//   grants: it matters whether the code of a token that all others see changes in an early layer.
//
// Measured: results/notes/generation.md.
AllowedGaps allowed_gaps(double error, std::int64_t vocabulary, std::int64_t count) {
  const double lambda = std::sqrt(2 * std::log(static_cast<double>(vocabulary)));
  const auto tokens = static_cast<double>(count);
  const double each = 8 * error;
  const double most = 2 * error;
  return {.each = each,
          .mean = lambda * most * most / 2 + 4 * std::sqrt(lambda * most * most * most / tokens) + each / tokens};
}

std::string audit_gaps(const DecoderMatrix& exact, std::span<const std::int32_t> in_front,
                       std::span<const std::int32_t> chosen, double error) {
  const std::string unit = " times the logits' root mean square below the greatest";
  double sum = 0;
  std::set<std::int32_t> seen;
  for (Eigen::Index i = 0; i < exact.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double rms = std::sqrt(exact.row(i).squaredNorm() / static_cast<double>(exact.cols()));
    Eigen::Index best = 0;
    const double gap = (exact.row(i).maxCoeff(&best) - exact(i, chosen[at])) / rms;
    const double allowed = allowed_gaps(error, exact.cols(), 1).each;
    if (!(gap <= allowed))
      return "new token " + std::to_string(i) + ": " + std::to_string(chosen[at]) + " is " + std::to_string(gap) +
             unit + ", " + std::to_string(best) + "; at most " + std::to_string(allowed) + " is allowed";
    if (seen.insert(in_front[at]).second) sum += gap;
  }
  const auto count = std::ssize(seen);
  const double mean = sum / static_cast<double>(count);
  const double allowed = allowed_gaps(error, exact.cols(), count).mean;
  if (mean <= allowed) return {};
  return "all new tokens: on average they are " + std::to_string(mean) + unit + "; at most " + std::to_string(allowed) +
         " is allowed";
}

}  // namespace inferometer
