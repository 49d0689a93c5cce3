#include "reference/generation/judged_tokens.hpp"

#include <algorithm>
#include <cmath>
#include <mutex>

#include "harness/operator/generate.hpp"
#include "reference/decoder/equations.hpp"

namespace inferometer {
namespace {

std::string wrong_token(std::int64_t sequence, std::int64_t index, std::int32_t token, const std::string& why) {
  return "sequence " + std::to_string(sequence) + ", new token " + std::to_string(index) + ": " +
         std::to_string(token) + " " + why;
}

std::string audit_sequence(const GenerationProblem& p, const DecoderWeights& weights, std::int64_t sequence,
                           std::span<const std::int32_t> prompt, std::span<const std::int32_t> tokens, int threads) {
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());
  all.insert(all.end(), tokens.begin(), tokens.end() - 1);
  const DecoderMatrix logits =
      decoder_logits(weights, all, {.weights = p.weight_bits, .kv = p.kv_bits}, p.prompt_tokens - 1, threads);
  for (std::int64_t i = 0; i < p.new_tokens; ++i) {
    const std::int32_t token = tokens[static_cast<std::size_t>(i)];
    const double rms = std::sqrt(logits.row(i).squaredNorm() / static_cast<double>(logits.cols()));
    Eigen::Index best = 0;
    const double gap = (logits.row(i).maxCoeff(&best) - logits(i, token)) / rms;
    if (!(gap <= allowed_gap(p)))
      return wrong_token(sequence, i, token,
                         "is " + std::to_string(gap) + " times the logits' root mean square below the greatest, " +
                             std::to_string(best) + "; at most " + std::to_string(allowed_gap(p)) + " is allowed");
  }
  return {};
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

// A logit's error is the sum of the roundings of some ten tensors a layer, each 2^-11 / sqrt(3) of the tensor on
// average and all independent; two logits err, and of thousands the worst is four to five deviations off: 8 in all. A
// quantised cache adds what codes on the other side of a tie do: 5e-3 of the logits with 8 bits, 2e-2 with 4
// (tests/kernels/decoder/logits_gpu_test.cpp).
double allowed_gap(const GenerationProblem& p) {
  const double rounding =
      0x1p-11 / std::sqrt(3.0) * std::sqrt(10.0 * static_cast<double>(decoder_shape(p.model).layers));
  const double codes = p.kv_bits == 16 ? 0 : p.kv_bits == 8 ? 5e-3 : 2e-2;
  return 8 * std::hypot(rounding, codes);
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
