#include "reference/generation/judged_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>

#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

std::string wrong_token(std::int64_t sequence, std::int64_t index, std::int32_t token, const std::string& why) {
  return "sequence " + std::to_string(sequence) + ", new token " + std::to_string(index) + ": " +
         std::to_string(token) + " " + why;
}

// What a correct device is at least granted, however few tokens tell of its error: the roundings of some ten tensors a
// layer, each 2^-11 / sqrt(3) of the tensor on average and all independent, and codes on the other side of a tie as
// they are on the tiny shape (tests/kernels/decoder/logits_gpu_test.cpp).
double least_error(const GenerationProblem& p) {
  const double rounding =
      0x1p-11 / std::sqrt(3.0) * std::sqrt(10.0 * static_cast<double>(decoder_shape(p.model).layers));
  const double codes = p.kv_bits == 16 ? 0 : p.kv_bits == 8 ? 5e-3 : 2e-2;
  return std::hypot(rounding, codes);
}

std::string audit_sequence(const GenerationProblem& p, const DecoderWeights& weights, std::int64_t sequence,
                           std::span<const std::int32_t> prompt, std::span<const std::int32_t> tokens, int threads) {
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());
  all.insert(all.end(), tokens.begin(), tokens.end() - 1);
  DecoderBits bits{.weights = p.weight_bits, .kv = p.kv_bits};
  const DecoderMatrix exact = decoder_logits(weights, all, bits, p.prompt_tokens - 1, threads);
  bits.activations = 16;
  const DecoderMatrix rounded = decoder_logits(weights, all, bits, p.prompt_tokens - 1, threads);
  const double error = std::max(least_error(p), logits_error(exact, rounded));
  const auto in_front = std::span<const std::int32_t>(all).last(tokens.size());
  const std::string sentence = audit_gaps(exact, in_front, tokens, error);
  return sentence.empty() ? sentence : "sequence " + std::to_string(sequence) + ", " + sentence;
}

// The last tokens that passed.
class Passed {
 public:
  bool holds(const GenerationProblem& p, std::span<const std::int32_t> tokens) const {
    const std::lock_guard lock(mutex_);
    return p == problem_ && std::ranges::equal(tokens, tokens_);
  }
  void keep(const GenerationProblem& p, std::span<const std::int32_t> tokens) {
    const std::lock_guard lock(mutex_);
    problem_ = p;
    tokens_.assign(tokens.begin(), tokens.end());
  }

 private:
  mutable std::mutex mutex_;
  GenerationProblem problem_;
  std::vector<std::int32_t> tokens_;
};

}  // namespace

std::vector<std::int32_t> generation_prompts(const GenerationProblem& p) {
  const auto vocabulary = static_cast<std::uint64_t>(decoder_shape(p.model).vocabulary);
  constexpr std::uint64_t kPromptStream = std::uint64_t{1} << 32;  // past the numbers of all weights
  const std::uint64_t key = stream_key(static_cast<std::uint64_t>(p.model_seed), kPromptStream);
  std::vector<std::int32_t> prompts(static_cast<std::size_t>(p.batch * p.prompt_tokens));
  for (std::size_t i = 0; i < prompts.size(); ++i)
    prompts[i] = static_cast<std::int32_t>(mix_bits(key + i * 0x9e3779b97f4a7c15ULL) % vocabulary);
  return prompts;
}

double judging_flops(const GenerationProblem& p) {
  return 2.0 * static_cast<double>(parameters(decoder_shape(p.model))) * static_cast<double>(p.length());
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

std::string audit_tokens(const GenerationProblem& p, std::span<const std::int32_t> tokens, int threads) {
  const SeededWeights weights(decoder_shape(p.model), static_cast<std::uint64_t>(p.model_seed));
  const std::vector<std::int32_t> prompts = generation_prompts(p);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= weights.shape().vocabulary)
      return wrong_token(static_cast<std::int64_t>(i) / p.new_tokens, static_cast<std::int64_t>(i) % p.new_tokens,
                         tokens[i], "is no token of the vocabulary of " + std::to_string(weights.shape().vocabulary));
  static Passed passed;
  if (passed.holds(p, tokens)) return {};
  const auto judged =
      static_cast<std::int64_t>(std::clamp(kEnoughJudgingFlops / judging_flops(p), 1.0, static_cast<double>(p.batch)));
  for (std::int64_t s = 0; s < judged; ++s) {
    const auto part = [s](std::span<const std::int32_t> of, std::int64_t count) {
      return of.subspan(static_cast<std::size_t>(s * count), static_cast<std::size_t>(count));
    };
    if (auto sentence =
            audit_sequence(p, weights, s, part(prompts, p.prompt_tokens), part(tokens, p.new_tokens), threads);
        !sentence.empty())
      return sentence;
  }
  passed.keep(p, tokens);
  return {};
}

}  // namespace inferometer
