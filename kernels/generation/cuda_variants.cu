// generation / cuda.recompute, cuda.contiguous, cuda.paged: a decoder on the GPU with random weights.
//
//   in   prompts  [batch, prompt_tokens]   i32
//   out  result   [result_elements()]      i32, tokens and their times
//
// With a cache, prompts run first, all but their last tokens; these then begin the generation, in which every step is a
// CUDA graph whose tokens stay on the device: nothing is waited for until the end. Without one the host takes each
// token and queues the whole sequences again. Times are taken on the device.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/operator/cuda_check.cuh"
#include "harness/operator/variant.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/generation/record.hpp"
#include "reference/generation/problem.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kStepTokens = 4096;  // of prompts in one step: enough to be bound by arithmetic

enum class Cache : std::uint8_t { none, contiguous, paged };

DecoderConfig config_for(const GenerationProblem& p, Cache cache) {
  // A contiguous cache has a block for each sequence; 128 keys are what prefill attention takes at once.
  const std::int64_t block_size = cache == Cache::contiguous ? (p.length() + 127) / 128 * 128 : p.block_size;
  const std::int64_t blocks = (p.length() + block_size - 1) / block_size;
  return {.weight_bits = p.weight_bits,
          .kv_bits = p.kv_bits,
          .block_size = block_size,
          .num_blocks = p.batch * blocks,
          .max_rows = p.batch,
          .max_tokens = std::max(
              {p.batch, cache == Cache::none ? p.length() : 1, std::min(p.batch * p.prompt_tokens, kStepTokens)}),
          .max_length = p.length()};
}

struct State {
  State(const GenerationProblem& p, Cache cache, const GenerationTensors& t, Stream stream, Allocator& allocator)
      : config(config_for(p, cache)),
        decoder(SeededWeights(decoder_shape(p.model), static_cast<std::uint64_t>(p.model_seed)), config, stream,
                allocator),
        clock_ns(allocator.allocate(sizeof(std::uint64_t), "clock")),
        prompts(static_cast<std::size_t>(p.batch * p.prompt_tokens)),
        table(static_cast<std::size_t>(config.num_blocks)) {
    INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(prompts.data(), t.prompts, prompts.size() * sizeof(prompts[0]),
                                           cudaMemcpyDeviceToHost, stream));
    INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
    std::iota(table.begin(), table.end(), 0);
  }

  std::uint64_t* clock() const { return static_cast<std::uint64_t*>(clock_ns.get()); }

  // Sequence s owns neighbouring blocks.
  StepRow row(const GenerationProblem& p, std::int64_t s, std::span<const TokenId> tokens, std::int64_t position,
              bool samples) const {
    const std::int64_t blocks = config.num_blocks / p.batch;
    return {.sequence = s,
            .tokens = tokens,
            .position = position,
            .table = std::span(table).subspan(static_cast<std::size_t>(s * blocks), static_cast<std::size_t>(blocks)),
            .samples = samples};
  }

  DecoderConfig config;
  CudaDecoder decoder;
  std::shared_ptr<void> clock_ns;
  std::vector<TokenId> prompts;  // [batch, prompt_tokens]
  std::vector<std::int32_t> table;
};

// Tokens [begin, end) of the prompts, in steps of at most max_tokens.
void queue_prompts(State& state, const GenerationProblem& p, std::int64_t begin, std::int64_t end) {
  StepBatch batch;
  const auto flush = [&] {
    if (batch.rows.empty()) return;
    state.decoder.queue_batch(batch);
    state.decoder.queue_step();
    batch = {};
  };
  for (std::int64_t s = 0; s < p.batch; ++s) {
    for (std::int64_t at = begin; at < end;) {
      if (batch.tokens == state.config.max_tokens) flush();
      const std::int64_t count = std::min(end - at, state.config.max_tokens - batch.tokens);
      const auto tokens =
          std::span(state.prompts)
              .subspan(static_cast<std::size_t>(s * p.prompt_tokens + at), static_cast<std::size_t>(count));
      batch.rows.push_back(state.row(p, s, tokens, at, false));
      batch.tokens += count;
      at += count;
      if (at < end) flush();  // the rest of a prompt reads what this step stores
    }
  }
  flush();
}

void run_cached(const GenerationProblem& p, const GenerationTensors& t, const Launch& launch) {
  State& state = *static_cast<State*>(launch.state);
  // The decoder's inputs are free again. A stream under capture refuses this, and it could not take graphs in anyway.
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));
  launch_start_record(p, t.result, state.clock(), launch.stream);
  queue_prompts(state, p, 0, p.prompt_tokens - 1);
  StepBatch last;
  for (std::int64_t s = 0; s < p.batch; ++s) {
    const auto token = std::span(state.prompts).subspan(static_cast<std::size_t>((s + 1) * p.prompt_tokens - 1), 1);
    last.rows.push_back(state.row(p, s, token, p.prompt_tokens - 1, true));
  }
  state.decoder.queue_batch(last);
  for (std::int64_t i = 0; i < p.new_tokens; ++i) {
    if (i > 0) state.decoder.queue_advance();
    state.decoder.queue_step();
    launch_record(p, state.decoder.device_next(), 0, p.batch, i, t.result, state.clock(), launch.stream);
  }
}

void run_recompute(const GenerationProblem& p, const GenerationTensors& t, const Launch& launch) {
  State& state = *static_cast<State*>(launch.state);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(launch.stream));
  launch_start_record(p, t.result, state.clock(), launch.stream);
  std::vector<std::vector<TokenId>> sequences;
  for (std::int64_t s = 0; s < p.batch; ++s)
    sequences.emplace_back(state.prompts.begin() + s * p.prompt_tokens,
                           state.prompts.begin() + (s + 1) * p.prompt_tokens);
  for (std::int64_t i = 0; i < p.new_tokens; ++i) {
    const std::int64_t at_once = std::min(state.config.max_tokens / (p.prompt_tokens + i), p.batch);
    for (std::int64_t first = 0; first < p.batch; first += at_once) {
      const std::int64_t rows = std::min(at_once, p.batch - first);
      StepBatch batch;
      for (std::int64_t s = first; s < first + rows; ++s)
        batch.rows.push_back(state.row(p, s, sequences[static_cast<std::size_t>(s)], 0, true));
      std::vector<TokenId> next(static_cast<std::size_t>(rows));
      state.decoder.queue_batch(batch);
      state.decoder.queue_step();
      launch_record(p, state.decoder.device_next(), first, rows, i, t.result, state.clock(), launch.stream);
      state.decoder.finish_step(next);
      for (std::int64_t s = 0; s < rows; ++s)
        sequences[static_cast<std::size_t>(first + s)].push_back(next[static_cast<std::size_t>(s)]);
    }
  }
}

template <Cache kCache>
std::shared_ptr<void> prepare(const GenerationProblem& p, const GenerationTensors& t, const Launch& launch,
                              Allocator& allocator) {
  return std::make_shared<State>(p, kCache, t, launch.stream, allocator);
}

const RegisterVariant<Generation> recompute{{
    .name = "cuda.recompute",
    .summary = "the whole sequence is computed again for each token, and the host waits for it",
    .min_sm = 80,
    .prepare = &prepare<Cache::none>,
    .run = &run_recompute,
}};

const RegisterVariant<Generation> contiguous{{
    .name = "cuda.contiguous",
    .summary = "a cache with room for each whole sequence; steps are CUDA graphs",
    .min_sm = 80,
    .prepare = &prepare<Cache::contiguous>,
    .run = &run_cached,
}};

const RegisterVariant<Generation> paged{{
    .name = "cuda.paged",
    .summary = "a paged cache; steps are CUDA graphs",
    .min_sm = 80,
    .prepare = &prepare<Cache::paged>,
    .run = &run_cached,
}};

}  // namespace
}  // namespace inferometer
