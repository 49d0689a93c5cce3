// generation / cpu.recompute, cpu.cached: the decoder in f32, without a KV cache between tokens and with one.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/operator/variant.hpp"
#include "reference/decoder/cpu_decoder.hpp"
#include "reference/generation/problem.hpp"
#include "reference/generation/token_times.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostParameters = std::int64_t{1} << 31;  // 8 GB as f32

std::optional<std::string> unsupported(const GenerationProblem& p) {
  if (const std::int64_t count = parameters(decoder_shape(p.model)); count > kMostParameters)
    return "model must have at most " + std::to_string(kMostParameters) + " parameters, held as f32, got " +
           std::to_string(count);
  return std::nullopt;
}

struct State {
  State(const GenerationProblem& p, const DecoderShape& shape, int threads)
      : decoder(SeededWeights(shape, static_cast<std::uint64_t>(p.model_seed)),
                {.weights = p.weight_bits, .kv = p.kv_bits}, threads),
        caches(static_cast<std::size_t>(p.batch), CpuKvCache(shape, p.length())),
        sequences(static_cast<std::size_t>(p.batch)) {}

  CpuDecoder decoder;
  std::vector<CpuKvCache> caches;
  std::vector<std::vector<std::int32_t>> sequences;  // prompts, and what came after them
};

std::shared_ptr<void> prepare(const GenerationProblem& p, const GenerationTensors&, const Launch& launch, Allocator&) {
  return std::make_shared<State>(p, decoder_shape(p.model), launch.threads);
}

template <bool kCached>
void run(const GenerationProblem& p, const GenerationTensors& t, const Launch& launch) {
  using Clock = std::chrono::steady_clock;
  State& state = *static_cast<State*>(launch.state);
  auto last = Clock::now();
  for (std::int64_t s = 0; s < p.batch; ++s) {
    const std::span prompt(t.prompts + s * p.prompt_tokens, static_cast<std::size_t>(p.prompt_tokens));
    state.sequences[static_cast<std::size_t>(s)].assign(prompt.begin(), prompt.end());
    state.caches[static_cast<std::size_t>(s)].clear();
  }
  t.result[0] = static_cast<std::int32_t>(p.batch);
  t.result[1] = static_cast<std::int32_t>(p.new_tokens);
  for (std::int64_t i = 0; i < p.new_tokens; ++i) {
    for (std::int64_t s = 0; s < p.batch; ++s) {
      std::vector<std::int32_t>& sequence = state.sequences[static_cast<std::size_t>(s)];
      CpuKvCache& cache = state.caches[static_cast<std::size_t>(s)];
      if (!kCached) cache.clear();
      const auto missing = std::span(sequence).subspan(static_cast<std::size_t>(cache.length()));
      const std::int32_t token = greedy_token(state.decoder.step(missing, cache));
      t.result[p.tokens_at() + s * p.new_tokens + i] = token;
      sequence.push_back(token);
    }
    const auto now = Clock::now();
    store_time(std::chrono::nanoseconds(now - last).count(), t.result + p.times_at() + 2 * i);
    last = now;
  }
}

const RegisterVariant<Generation> recompute{{
    .name = "cpu.recompute",
    .summary = "f32; the whole sequence is computed again for each token",
    .unsupported = &unsupported,
    .prepare = &prepare,
    .run = &run<false>,
}};

const RegisterVariant<Generation> cached{{
    .name = "cpu.cached",
    .summary = "f32; keys and values of earlier tokens are kept",
    .unsupported = &unsupported,
    .prepare = &prepare,
    .run = &run<true>,
}};

}  // namespace
}  // namespace inferometer
