// The loop of a serving engine, host side: which requests run in a step, which of their tokens it computes, and in
// which blocks these stand. It owns the block pool and computes nothing itself.
//
// Requests are served in the order in which they are submitted. Those that run came before all that wait; a request
// that is preempted is the last that came of those that run, keeps its tokens and waits in front of the others.
//
// One step:
//   begin_step   takes blocks for tokens that are to be computed, and says what they are
//   a model      makes the copies and computes the rows
//   end_step     takes the next tokens; what has its last one leaves
// In between, requests may be submitted and aborted at any time.
//
// No request waits for ever: one that could not run alone in the pool is refused at once; of those that run the first
// one goes on in every step, since all others can be preempted for it. With prompts_alone it goes on in every step that
// takes up no new prompt, so that prompts that come without end and take a single step each could hold it up.
//
// For one thread, as the pool is. A step allocates nothing for requests that go on.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/serving/config.hpp"
#include "kernels/serving/request.hpp"
#include "kernels/serving/step_batch.hpp"

namespace inferometer {

class ServingEngine {
 public:
  explicit ServingEngine(const ServingConfig& config);  // throws ProblemError naming the field

  // Puts a request at the end of the queue. With max_new 0 it has ended at once and takes no block.
  // Throws BlockPoolError (empty_prompt, wrong_size; live_sequence for the id of a request that has not ended;
  // never_fits, with the figures) and has changed nothing then.
  void submit(ServingRequest request);

  // Ends a request before its time, wherever it is; it keeps the outputs it has, and all its blocks are returned: at
  // once, or with end_step() where the step is computing it. False for an id that is not, or no longer, in use: a
  // request may end before its client's wish arrives.
  bool abort(SequenceId id);

  bool busy() const { return !live_.empty(); }  // whether there is anything to run
  bool in_step() const { return in_step_; }

  // Plans a step. Where the engine is busy there is at least one row. The batch is valid until end_step().
  // Throws std::logic_error within a step.
  const StepBatch& begin_step();

  // The rows have been computed; `next` has an element for each, of which those of rows that sample count. `now_ns` is
  // the time at which these are there.
  // Throws std::logic_error outside a step, std::invalid_argument for another number of tokens.
  void end_step(std::span<const TokenId> next, std::int64_t now_ns);

  // The requests that have ended since the last call, in the order of their ends.
  std::vector<RequestRecord> take_ended();

  const ServingConfig& config() const { return config_; }
  const ServingLedger& ledger() const { return ledger_; }
  const BlockPool& pool() const { return pool_; }
  std::int64_t running() const { return std::ssize(running_); }
  std::int64_t waiting() const { return std::ssize(waiting_); }

  // A sentence for everything that does not hold: the pool's own invariants, its sequences against the requests that
  // run, their order, the reservation, the sums of the ledger. Empty when all is well. Reads everything; for tests.
  std::vector<std::string> check_invariants() const;

 private:
  // A request that has not ended.
  struct Sequence {
    RequestRecord record;
    std::vector<TokenId> tokens;       // the prompt and the outputs so far
    std::int64_t number = 0;           // of its submission
    std::int64_t stored = 0;           // tokens in the cache
    std::int64_t planned = 0;          // tokens that this step computes
    std::int64_t computed_before = 0;  // tokens in front that had been in the cache when it was preempted
    bool admitted = false;             // ever
    bool runs = false;
    bool aborted = false;  // while a step computes it

    std::int64_t missing() const { return std::ssize(tokens) - stored; }  // tokens without which there is no next one
    std::int64_t outputs() const { return std::ssize(tokens) - record.prompt_tokens; }
    std::int64_t capacity() const { return record.prompt_tokens + record.max_new - 1; }  // tokens it may come to store
  };
  using SequencePtr = std::unique_ptr<Sequence>;

  void check_fits(std::int64_t prompt_tokens, std::int64_t max_new) const;
  // engine_plan.cpp
  void share_budget(std::int64_t& budget);
  void continue_running();
  bool make_room(std::size_t place);
  void preempt_latest();
  void admit(std::int64_t& budget);
  bool admit_first(std::int64_t budget);
  void add_row(Sequence& sequence);
  std::int64_t padding() const;

  void release(Sequence& sequence);
  void finish(Sequence& sequence, RequestOutcome outcome);
  void count_slots();
  void check_sequences(std::vector<std::string>& broken) const;

  ServingConfig config_;
  BlockPool pool_;
  std::deque<SequencePtr> waiting_;   // the next one first
  std::vector<SequencePtr> running_;  // in order of submission
  std::unordered_map<SequenceId, Sequence*> live_;
  std::vector<RequestRecord> ended_;
  StepBatch batch_;
  std::vector<Sequence*> rows_;  // of the batch
  ServingLedger ledger_;
  std::int64_t submissions_ = 0;
  std::int64_t reserved_blocks_ = 0;  // where the policy reserves
  std::int64_t batch_requests_ = 0;   // that ran when somebody could last join: with static those of the whole batch
  bool in_step_ = false;
  bool somebody_waits_ = false;  // since this step was planned
  bool first_is_stuck_ = false;  // the first that waits did not fit, and nobody has given up blocks since
};

}  // namespace inferometer
