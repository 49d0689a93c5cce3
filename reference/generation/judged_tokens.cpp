#include "reference/generation/judged_tokens.hpp"

#include <algorithm>
#include <mutex>

#include "harness/operator/generate.hpp"
#include "reference/decoder/chosen_tokens.hpp"

namespace inferometer {
namespace {

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

std::string audit_tokens(const GenerationProblem& p, std::span<const std::int32_t> tokens, int threads) {
  const SeededWeights weights(decoder_shape(p.model), static_cast<std::uint64_t>(p.model_seed));
  const std::vector<std::int32_t> prompts = generation_prompts(p);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    if (tokens[i] < 0 || tokens[i] >= weights.shape().vocabulary) {
      const auto at = static_cast<std::int64_t>(i);
      return "sequence " + std::to_string(at / p.new_tokens) + ", new token " + std::to_string(at % p.new_tokens) +
             ": " + std::to_string(tokens[i]) + " is no token of the vocabulary of " +
             std::to_string(weights.shape().vocabulary);
    }
  static Passed passed;
  if (passed.holds(p, tokens)) return {};
  const auto judged =
      static_cast<std::int64_t>(std::clamp(kEnoughJudgingFlops / judging_flops(p), 1.0, static_cast<double>(p.batch)));
  for (std::int64_t s = 0; s < judged; ++s) {
    const auto part = [s](std::span<const std::int32_t> of, std::int64_t count) {
      return of.subspan(static_cast<std::size_t>(s * count), static_cast<std::size_t>(count));
    };
    const std::string sentence = audit_chosen(weights, part(prompts, p.prompt_tokens), part(tokens, p.new_tokens),
                                              {.weights = p.weight_bits, .kv = p.kv_bits}, threads);
    if (!sentence.empty()) return "sequence " + std::to_string(s) + ", " + sentence;
  }
  passed.keep(p, tokens);
  return {};
}

}  // namespace inferometer
