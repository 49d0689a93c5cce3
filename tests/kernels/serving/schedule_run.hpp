// A schedule through a serving engine, held in every step against what must be true of any schedule.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/serving/engine.hpp"
#include "tests/kernels/serving/cache_model.hpp"
#include "tests/kernels/serving/schedule.hpp"

namespace inferometer::test {

class ScheduleRun {
 public:
  // `spoil`, for tests of the test, changes what the model has said.
  using Spoil = std::function<void(const StepBatch&, std::span<TokenId>)>;
  explicit ScheduleRun(const Schedule& schedule, Spoil spoil = {})
      : schedule_(schedule),
        spoil_(std::move(spoil)),
        engine_(schedule.config),
        model_(engine_.pool()),
        computed_(schedule.requests.size()) {
    for (std::size_t id = 0; id < schedule.requests.size(); ++id) {
      const PlannedRequest& request = schedule.requests[id];
      prompts_.push_back(prompt_of(request, static_cast<SequenceId>(id)));
      outputs_.push_back(expected_outputs(prompts_.back(), request.max_new));
      last_event_ = std::max({last_event_, request.arrival, request.abort});
      // The first of those that run takes at most one step for each of its tokens; twice, for steps of prompts alone.
      most_steps_ += 2 * (request.prompt + request.max_new);
    }
    most_steps_ += last_event_;
  }

  // How it fails, in a sentence; empty when all holds.
  std::string failure() {
    try {
      for (step_ = 0; step_ <= last_event_ || engine_.busy(); ++step_) {
        if (step_ > most_steps_) fail("no end after " + std::to_string(step_) + " steps");
        submit_and_abort();
        if (engine_.busy()) run_step();
        sound();
        collect();
      }
      check_end();
    } catch (const Failure& failure) {
      return "step " + std::to_string(step_) + ": " + failure.what();
    }
    return "";
  }

  const ServingLedger& ledger() const { return engine_.ledger(); }
  std::int64_t refused() const { return refused_; }
  std::int64_t aborted() const { return aborted_; }

 private:
  class Failure : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
  };
  [[noreturn]] static void fail(const std::string& sentence) { throw Failure(sentence); }
  static void expect(bool holds, const char* sentence) {
    if (!holds) fail(sentence);
  }
  const PlannedRequest& planned(SequenceId id) const { return schedule_.requests[static_cast<std::size_t>(id)]; }
  std::int64_t size() const { return std::ssize(schedule_.requests); }

  void submit_and_abort() {
    for (SequenceId id = 0; id < size(); ++id)
      if (planned(id).arrival == step_) submit(id);
    for (SequenceId id = 0; id < size(); ++id)
      if (planned(id).abort == step_ && !planned(id).abort_within) abort(id);
  }

  void submit(SequenceId id) {
    const PlannedRequest& request = planned(id);
    const std::int64_t stored = request.max_new == 0 ? 0 : request.prompt + request.max_new - 1;
    const ServingConfig& config = schedule_.config;
    const bool fits = stored <= std::int64_t{config.num_blocks} * config.block_size &&
                      (config.max_length == 0 || stored <= config.max_length);
    bool taken = true;
    try {
      engine_.submit({.id = id, .prompt = prompts_[static_cast<std::size_t>(id)], .max_new = request.max_new});
    } catch (const BlockPoolError& error) {
      expect(error.fault() == BlockPoolFault::never_fits, "refused for another reason than its size");
      taken = false;
    }
    expect(taken == fits, "refused although it fits, or taken although it never will");
    if (taken && request.max_new > 0) alive_.insert(id);
    if (taken) order_.push_back(id);
    if (!taken) ++refused_;
  }

  void abort(SequenceId id) {
    expect(engine_.abort(id) == (alive_.erase(id) > 0), "abort() does not know which request has not ended");
    expect(!engine_.abort(id), "aborted twice");
  }

  void run_step() {
    const std::int64_t ran_before = engine_.running();
    const StepBatch& batch = engine_.begin_step();
    check_batch(batch, ran_before);
    for (const StepRow& row : batch.rows) running_.insert(row.sequence);
    for (SequenceId id = 0; id < size(); ++id)
      if (planned(id).abort == step_ && planned(id).abort_within) abort(id);
    std::vector<TokenId> next(batch.rows.size());
    model_.step(batch, next);
    if (spoil_) spoil_(batch, next);
    sound();
    engine_.end_step(next, step_);
  }

  void check_batch(const StepBatch& batch, std::int64_t ran_before) {
    const ServingConfig& config = schedule_.config;
    expect(!batch.rows.empty(), "requests wait and nothing runs");
    std::set<SequenceId> rows;
    std::int64_t tokens = 0;
    for (const StepRow& row : batch.rows) {
      expect(rows.insert(row.sequence).second, "two rows of one request");
      expect(alive_.contains(row.sequence), "a row of a request that has ended");
      check_row(row);
      tokens += std::ssize(row.tokens);
      const std::int64_t end = row.position + std::ssize(row.tokens);
      std::int64_t& before = computed_[static_cast<std::size_t>(row.sequence)];
      row_recomputed_ += std::max<std::int64_t>(0, std::min(end, before) - row.position);
      before = std::max(before, end);
      if (config.policy == ServingPolicy::static_batch && ran_before > 0)
        expect(running_.contains(row.sequence), "somebody joined a static batch");
      if (started_.insert(row.sequence).second) check_turn(row.sequence);
    }
    expect(tokens == batch.tokens, "the tokens of a batch are not those of its rows");
    if (config.policy == ServingPolicy::chunked) expect(tokens <= config.token_budget, "more tokens than the budget");
    if (!config.prompts_alone) expect(std::ssize(batch.rows) == engine_.running(), "a request that runs has no row");
  }

  // Its tokens are the request's, and nobody else may read the slots that it writes.
  void check_row(const StepRow& row) const {
    const auto id = static_cast<std::size_t>(row.sequence);
    expect(!row.tokens.empty(), "a row without tokens");
    std::vector<TokenId> all = prompts_[id];
    all.insert(all.end(), outputs_[id].begin(), outputs_[id].end());
    const std::int64_t end = row.position + std::ssize(row.tokens);
    expect(row.position >= 0 && end < std::ssize(all) + 1, "a row of tokens that the request does not have");
    expect(std::equal(row.tokens.begin(), row.tokens.end(), all.begin() + row.position), "a row of other tokens");
    const bool whole = schedule_.config.policy != ServingPolicy::chunked;
    expect(!whole || row.samples, "a prompt in parts");
    expect(std::ssize(row.table) == engine_.pool().blocks_of(end), "a table of another length than its tokens have");
    for (std::int64_t block = row.position / engine_.pool().block_size(); block < std::ssize(row.table); ++block)
      expect(engine_.pool().references(row.table[static_cast<std::size_t>(block)]) == 1, "a row writes a shared block");
  }

  // Those in front of it have started, or ended before.
  void check_turn(SequenceId id) const {
    for (const SequenceId other : order_) {
      if (other == id) return;
      expect(started_.contains(other) || !alive_.contains(other), "a request started before one that came first");
    }
  }

  void collect() {
    for (RequestRecord& record : engine_.take_ended()) {
      const bool completed = record.outcome == RequestOutcome::completed;
      const std::vector<TokenId>& expected = outputs_[static_cast<std::size_t>(record.id)];
      expect(!completed || record.outputs.size() == expected.size(), "a completed request lacks outputs");
      expect(record.outputs.size() <= expected.size() &&
                 std::equal(record.outputs.begin(), record.outputs.end(), expected.begin()),
             "a request said something else than alone");
      expect(record.token_ns.size() == record.outputs.size(), "not a time for each output");
      expect(completed || planned(record.id).abort >= 0, "aborted unasked");
      if (completed) alive_.erase(record.id);
      running_.erase(record.id);
      if (!completed) ++aborted_;
      ++ended_;
      produced_ += std::ssize(record.outputs);
      recomputed_ += record.recomputed_tokens;
      stored_ += completed && !record.outputs.empty() ? record.prompt_tokens + std::ssize(record.outputs) - 1 : 0;
    }
  }

  void sound() const {
    const std::vector<std::string> broken = engine_.check_invariants();
    if (!broken.empty()) fail(broken.front());
  }

  void check_end() const {
    const BlockPoolUsage usage = engine_.pool().usage();
    const ServingLedger& ledger = engine_.ledger();
    expect(usage.owned_blocks == 0 && usage.sequences == 0, "blocks are held although all requests have ended");
    expect(schedule_.config.prefix_reuse || usage.free_blocks == usage.total_blocks, "blocks are lost");
    expect(ended_ == std::ssize(order_), "a request has no record");
    expect(ledger.producing == produced_, "the ledger counts other outputs than there are");
    expect(ledger.recomputed_tokens == row_recomputed_, "the ledger counts other recomputed tokens than the rows");
    expect(ledger.recomputed_tokens == recomputed_, "the ledger counts other recomputed tokens than the requests");
    expect(!reserves_maximum(schedule_.config.policy) || ledger.preemptions == 0, "preempted in spite of reservations");
    expect(schedule_.config.prompts_alone || ledger.stalled == 0, "a request stalled");
    if (aborted_ == 0 && !schedule_.config.prefix_reuse)
      expect(ledger.computed_tokens == stored_ + ledger.recomputed_tokens, "computed more, or less, than needed");
  }

  Schedule schedule_;
  Spoil spoil_;
  ServingEngine engine_;
  CacheModel model_;
  std::vector<std::vector<TokenId>> prompts_;
  std::vector<std::vector<TokenId>> outputs_;
  std::vector<std::int64_t> computed_;  // by request: tokens that had been in the cache once
  std::vector<SequenceId> order_;       // of submission
  std::set<SequenceId> alive_;          // submitted and not known to have ended
  std::set<SequenceId> started_;        // ever had a row
  std::set<SequenceId> running_;        // had a row, and no record yet
  int step_ = 0;
  int last_event_ = 0;
  int most_steps_ = 0;
  std::int64_t refused_ = 0;
  std::int64_t aborted_ = 0;
  std::int64_t ended_ = 0;
  std::int64_t produced_ = 0;
  std::int64_t recomputed_ = 0;      // as the records say
  std::int64_t row_recomputed_ = 0;  // as the rows say
  std::int64_t stored_ = 0;
};

}  // namespace inferometer::test
