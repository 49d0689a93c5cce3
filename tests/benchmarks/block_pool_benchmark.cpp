// The block pool of the paged KV cache: operations a second on one core. An item is one call that changes the pool.
// The argument is the number of blocks: what costs O(1) must not depend on it but through the caches of the machine.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"

namespace {

using inferometer::BlockPool;
using inferometer::SequenceId;
using inferometer::TokenId;

constexpr std::int32_t kBlockSize = 16;
constexpr std::int64_t kPrompt = 1024;

std::vector<TokenId> prompt_of(TokenId first) {
  std::vector<TokenId> tokens(kPrompt);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

BlockPool pool_of(benchmark::State& state, bool prefix_reuse) {
  return BlockPool({.num_blocks = static_cast<std::int32_t>(state.range(0)),
                    .block_size = kBlockSize,
                    .prefix_reuse = prefix_reuse});
}

// A batch in decode: each sequence gets a token a step, and ends after 200; another takes its place.
void append_and_free(benchmark::State& state) {
  constexpr std::int64_t kSequences = 64;
  constexpr std::int64_t kLength = 200;
  BlockPool pool = pool_of(state, false);
  const auto length_at = [&](SequenceId id) { return 1 + id * 3 % kLength; };  // so that they end one by one
  std::vector<std::int64_t> left;
  for (SequenceId id = 0; id < kSequences; ++id) {
    pool.submit(id, 1, kLength);
    pool.append(id, length_at(id));
    left.push_back(kLength - length_at(id));
  }
  std::int64_t calls = 0;
  for (auto _ : state) {
    for (SequenceId id = 0; id < kSequences; ++id) {
      if (std::int64_t& rest = left[static_cast<std::size_t>(id)]; rest-- == 0) {
        pool.free(id);
        pool.submit(id, 1, kLength);
        rest = kLength - 1;
        calls += 2;
      }
      pool.append(id);
      ++calls;
    }
  }
  state.SetItemsProcessed(calls);
}
BENCHMARK(append_and_free)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20);

// One token of known content a call: every 16th call hashes a block and publishes it.
void append_with_prefix_reuse(benchmark::State& state) {
  BlockPool pool = pool_of(state, true);
  const std::int64_t capacity = state.range(0) * kBlockSize;
  pool.submit(0, 1, capacity);
  TokenId token = 0;
  for (auto _ : state) {
    if (pool.length(0) == capacity) {
      pool.free(0);
      pool.submit(0, 1, capacity);
    }
    pool.append(0, std::span(&token, 1));
    ++token;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(append_with_prefix_reuse)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20);

// A prompt of one block, in and out.
void submit_append_free(benchmark::State& state) {
  BlockPool pool = pool_of(state, false);
  for (auto _ : state) {
    pool.submit(1, kBlockSize, 1);
    pool.append(1, kBlockSize);
    pool.free(1);
  }
  state.SetItemsProcessed(3 * state.iterations());
}
BENCHMARK(submit_append_free)->Arg(1 << 10)->Arg(1 << 20);

// Blocks taken and given back, 64 at a time: the cost of a block.
void take_and_give_back_blocks(benchmark::State& state) {
  BlockPool pool = pool_of(state, false);
  for (auto _ : state) {
    pool.submit(1, kPrompt, 1);
    pool.append(1, kPrompt);
    pool.free(1);
  }
  state.SetItemsProcessed(2 * kPrompt / kBlockSize * state.iterations());
}
BENCHMARK(take_and_give_back_blocks)->Arg(1 << 10)->Arg(1 << 20);

// A fork of 20 tokens whose first append copies a block; the fork ends again.
void fork_and_copy_on_write(benchmark::State& state) {
  BlockPool pool = pool_of(state, false);
  pool.submit(1, 20, 10);
  pool.append(1, 20);
  pool.step_done();
  for (auto _ : state) {
    pool.fork(1, 2);
    pool.append(2);
    benchmark::DoNotOptimize(pool.pending_copies().data());
    pool.copies_made();
    pool.free(2);
  }
  if (pool.usage().copied_blocks != static_cast<std::int64_t>(state.iterations())) state.SkipWithError("no copy");
  state.SetItemsProcessed(4 * state.iterations());
}
BENCHMARK(fork_and_copy_on_write)->Arg(1 << 10)->Arg(1 << 20);

// A prompt of 1024 tokens of which all full blocks but the last are found.
void prefix_hit(benchmark::State& state) {
  BlockPool pool = pool_of(state, true);
  const std::vector<TokenId> prompt = prompt_of(0);
  pool.submit(1, prompt, 1);
  pool.append(1, prompt);
  pool.free(1);
  std::int64_t reused = 0;
  for (auto _ : state) {
    reused += pool.submit(1, prompt, 1);
    pool.free(1);
  }
  if (reused != static_cast<std::int64_t>(state.iterations()) * (kPrompt - kBlockSize)) state.SkipWithError("no hit");
  state.SetItemsProcessed(2 * state.iterations());
  state.counters["tokens"] = benchmark::Counter(static_cast<double>(reused), benchmark::Counter::kIsRate);
}
BENCHMARK(prefix_hit)->Arg(1 << 10)->Arg(1 << 16);

// A pool full of cached blocks: every block taken evicts one.
void evict(benchmark::State& state) {
  BlockPool pool = pool_of(state, true);
  TokenId first = 0;
  const auto run_prompt = [&] {
    const std::vector<TokenId> prompt = prompt_of(first);
    first += kPrompt;
    pool.submit(1, prompt, 1);
    pool.append(1, prompt);
    pool.free(1);
  };
  while (pool.usage().free_blocks > 0) run_prompt();
  const std::int64_t before = pool.usage().evicted_blocks;
  for (auto _ : state) run_prompt();
  state.SetItemsProcessed(pool.usage().evicted_blocks - before);
}
BENCHMARK(evict)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20);

}  // namespace

BENCHMARK_MAIN();
