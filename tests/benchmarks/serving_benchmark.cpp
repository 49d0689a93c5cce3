// The host's part of a serving step: begin_step and end_step, and submit for whoever takes the place of one that ended.
// An iteration is a step; at 256 running requests it is to stay below 50 us, since a device waits for it.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/serving/engine.hpp"

namespace {

using inferometer::SequenceId;
using inferometer::ServingConfig;
using inferometer::ServingEngine;
using inferometer::ServingPolicy;
using inferometer::StepBatch;
using inferometer::TokenId;

constexpr std::int64_t kPrompt = 512;
constexpr std::int64_t kOutputs = 256;

// As many requests as there are slots, always: they end one after the other.
class Load {
 public:
  explicit Load(const ServingConfig& config) : engine_(config), prompt_(kPrompt) {
    std::iota(prompt_.begin(), prompt_.end(), 0);
    for (std::int64_t slot = 0; slot < config.slots; ++slot) submit(1 + slot * 37 % kOutputs);
    for (std::int64_t i = 0; i < 4 * kOutputs; ++i) step();  // until everyone's place has been taken by another
  }

  void step() {
    const StepBatch& batch = engine_.begin_step();
    benchmark::DoNotOptimize(batch.rows.data());
    next_.resize(batch.rows.size());
    for (TokenId& token : next_) token = ++token_ & 0x7fff;
    rows_ += std::ssize(batch.rows);
    tokens_ += batch.tokens;
    engine_.end_step(next_, ++now_);
    const std::int64_t ended = std::ssize(engine_.take_ended());
    for (std::int64_t i = 0; i < ended; ++i) submit(kOutputs);
  }

  void forget() { rows_ = tokens_ = 0; }
  void report(benchmark::State& state) const {
    const auto per_step = [&](std::int64_t count) {
      return static_cast<double>(count) / static_cast<double>(state.iterations());
    };
    state.counters["rows"] = per_step(rows_);
    state.counters["tokens"] = per_step(tokens_);
    state.counters["preemptions"] = static_cast<double>(engine_.ledger().preemptions);
    state.SetItemsProcessed(rows_);
  }

 private:
  void submit(std::int64_t outputs) {
    std::rotate(prompt_.begin(), prompt_.begin() + 1, prompt_.end());  // no prompt begins as another did of late
    engine_.submit({.id = ids_++, .prompt = prompt_, .max_new = outputs});
  }

  ServingEngine engine_;
  std::vector<TokenId> prompt_;
  std::vector<TokenId> next_;
  SequenceId ids_ = 0;
  TokenId token_ = 0;
  std::int64_t now_ = 0;
  std::int64_t rows_ = 0;
  std::int64_t tokens_ = 0;
};

ServingConfig config_of(std::int64_t slots, ServingPolicy policy) {
  const auto blocks = static_cast<std::int32_t>(slots * (kPrompt + kOutputs) / 16);
  return {.policy = policy,
          .slots = slots,
          .num_blocks = blocks,
          .token_budget = policy == ServingPolicy::chunked ? 4 * slots : 0};
}

void run(benchmark::State& state, const ServingConfig& config) {
  Load load(config);
  load.forget();
  for (auto _ : state) load.step();
  load.report(state);
}

void iteration(benchmark::State& state) { run(state, config_of(state.range(0), ServingPolicy::iteration)); }
BENCHMARK(iteration)->Arg(32)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond);

void continuous(benchmark::State& state) { run(state, config_of(state.range(0), ServingPolicy::continuous)); }
BENCHMARK(continuous)->Arg(32)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond);

// Blocks for three quarters of what the requests come to store: some are preempted.
void continuous_with_preemption(benchmark::State& state) {
  ServingConfig config = config_of(state.range(0), ServingPolicy::continuous);
  config.num_blocks = config.num_blocks * 3 / 4;
  run(state, config);
}
BENCHMARK(continuous_with_preemption)->Arg(256)->Unit(benchmark::kMicrosecond);

void continuous_with_prefix_reuse(benchmark::State& state) {
  ServingConfig config = config_of(state.range(0), ServingPolicy::continuous);
  config.prefix_reuse = true;
  run(state, config);
}
BENCHMARK(continuous_with_prefix_reuse)->Arg(256)->Unit(benchmark::kMicrosecond);

void chunked(benchmark::State& state) { run(state, config_of(state.range(0), ServingPolicy::chunked)); }
BENCHMARK(chunked)->Arg(32)->Arg(256)->Arg(1024)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
