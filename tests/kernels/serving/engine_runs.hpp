// Runs of a serving engine for tests.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/serving/engine.hpp"
#include "kernels/serving/replay.hpp"
#include "tests/kernels/kv_cache/pool_support.hpp"
#include "tests/kernels/serving/cache_model.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {

inline void require_sound(const ServingEngine& engine) {
  const std::vector<std::string> broken = engine.check_invariants();
  CAPTURE(broken);
  REQUIRE(broken.empty());
}

// A prompt of so many tokens, unlike those of other ids.
inline ServingRequest request(SequenceId id, std::int64_t prompt, std::int64_t max_new) {
  return {.id = id, .prompt = consecutive(static_cast<TokenId>(1000 * id), prompt), .max_new = max_new};
}

// An engine and a model over its pool, step by step; the clock counts the steps that have ended.
struct EngineRun {
  explicit EngineRun(const ServingConfig& config)
      : engine(config), model(std::make_unique<CacheModel>(engine.pool())) {}

  // One step; the tokens of each row, by request.
  std::map<SequenceId, std::int64_t> step(const std::function<void()>& within = {}) {
    const StepBatch& batch = engine.begin_step();
    std::map<SequenceId, std::int64_t> tokens;
    for (const StepRow& row : batch.rows) tokens[row.sequence] = std::ssize(row.tokens);
    std::vector<TokenId> next(batch.rows.size());
    now += model->step(batch, next).ns;
    if (within) within();
    require_sound(engine);
    engine.end_step(next, now);
    require_sound(engine);
    for (RequestRecord& record : engine.take_ended()) records.insert_or_assign(record.id, std::move(record));
    return tokens;
  }

  void run() {
    while (engine.busy()) {
      REQUIRE(now < 100'000);
      step();
    }
    for (RequestRecord& record : engine.take_ended()) records.insert_or_assign(record.id, std::move(record));
  }

  // No request holds a block.
  bool all_returned() const { return engine.pool().usage().owned_blocks == 0; }

  ServingEngine engine;
  std::unique_ptr<CacheModel> model;
  std::int64_t now = 0;
  std::map<SequenceId, RequestRecord> records;
};

// All requests at once, in order, to the end.
inline EngineRun run_all(const ServingConfig& config, const std::vector<ServingRequest>& requests) {
  EngineRun run(config);
  for (const ServingRequest& one : requests) run.engine.submit(one);
  run.run();
  CHECK(run.all_returned());
  return run;
}

}  // namespace inferometer::test
