// One engine that runs on and on, with aborts and preemptions: it loses no block, and no memory.
// INFEROMETER_SOAK_SECONDS=600 makes it run for ten minutes.
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <vector>

#include "tests/kernels/serving/engine_runs.hpp"

using namespace inferometer;
using inferometer::test::CacheModel;
using inferometer::test::consecutive;

namespace {

constexpr std::uint64_t kSeed = 7;
constexpr int kLeastSteps = 20'000;
constexpr int kLook = 1'000;  // steps between two looks at the memory
// Live requests differ from look to look: at most 11 of 80 tokens each, their times and tables.
constexpr std::size_t kMostGrowth = std::size_t{64} << 10;

std::chrono::duration<double> soak_time() {
  const char* const seconds = std::getenv("INFEROMETER_SOAK_SECONDS");
  return std::chrono::duration<double>(seconds != nullptr ? std::atof(seconds) : 0);
}

class Soak {
 public:
  explicit Soak(bool prefix_reuse)
      : engine_({.slots = 8, .num_blocks = 50, .block_size = 4, .prefix_reuse = prefix_reuse}),
        model_(engine_.pool()),
        random_(kSeed) {}

  void step(bool may_submit) {
    while (may_submit && engine_.waiting() < 3)
      engine_.submit({.id = submitted_++,
                      .prompt = consecutive(static_cast<TokenId>(below(30)), 1 + below(40)),
                      .max_new = 1 + below(40)});
    maybe_abort();
    if (engine_.busy()) {
      const StepBatch& batch = engine_.begin_step();
      next_.assign(batch.rows.size(), 0);
      model_.step(batch, next_);
      maybe_abort();
      engine_.end_step(next_, ++now_);
    }
    for (const RequestRecord& record : engine_.take_ended()) {
      ++ended_;
      if (record.outcome == RequestOutcome::aborted) ++aborted_;
    }
  }

  const ServingEngine& engine() const { return engine_; }
  SequenceId submitted() const { return submitted_; }
  SequenceId ended() const { return ended_; }
  SequenceId aborted() const { return aborted_; }

 private:
  std::int64_t below(std::uint64_t n) { return static_cast<std::int64_t>(random_() % n); }
  void maybe_abort() {
    if (below(20) == 0) engine_.abort(submitted_ - 1 - below(10));
  }

  ServingEngine engine_;
  CacheModel model_;
  std::mt19937_64 random_;
  std::vector<TokenId> next_;
  std::int64_t now_ = 0;
  SequenceId submitted_ = 0;
  SequenceId ended_ = 0;
  SequenceId aborted_ = 0;
};

}  // namespace

TEST_CASE("serving soak: an engine that runs on with aborts and preemptions loses no block and no memory",
          "[serving][soak]") {
  CAPTURE(kSeed);
  for (const bool prefix_reuse : {false, true}) {
    CAPTURE(prefix_reuse);
    Soak soak(prefix_reuse);
    const auto end = std::chrono::steady_clock::now() + soak_time() / 2;
    std::size_t first_bytes = 0;
    std::size_t most_bytes = 0;
    for (std::int64_t step = 0; step < kLeastSteps || std::chrono::steady_clock::now() < end; ++step) {
      soak.step(true);
      if (step % 100 == 0) test::require_sound(soak.engine());
      if (step % kLook != kLook - 1) continue;
      most_bytes = std::max(most_bytes, mallinfo2().uordblks);
      if (first_bytes == 0) first_bytes = most_bytes;
    }
    while (soak.engine().busy()) soak.step(false);
    soak.step(false);  // takes what was aborted last
    test::require_sound(soak.engine());
    CHECK(most_bytes <= first_bytes + kMostGrowth);
    CHECK(soak.ended() == soak.submitted());
    CHECK(soak.aborted() > 500);
    CHECK(soak.engine().ledger().preemptions > 500);
    CHECK(soak.engine().pool().usage().owned_blocks == 0);
    CHECK(soak.engine().pool().usage().free_blocks + soak.engine().pool().usage().cached_blocks == 50);
  }
}
