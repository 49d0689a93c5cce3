// What a step of the serving engine computes: who goes on, who gives up blocks, who joins.
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "kernels/serving/engine.hpp"

namespace inferometer {

const StepBatch& ServingEngine::begin_step() {
  if (in_step_) throw std::logic_error("begin_step() before the end_step() of the step before");
  in_step_ = true;
  batch_.rows.clear();
  batch_.tokens = 0;
  rows_.clear();
  std::int64_t budget =
      config_.policy == ServingPolicy::chunked ? config_.token_budget : std::numeric_limits<std::int64_t>::max();

  if (config_.prompts_alone) admit(budget);
  if (rows_.empty()) {
    const bool may_join = config_.policy != ServingPolicy::static_batch || running_.empty();
    share_budget(budget);
    continue_running();
    if (may_join) {
      admit(budget);
      batch_requests_ = running();
    }
  }

  batch_.copies = pool_.pending_copies();
  batch_.padding_tokens = padding();
  somebody_waits_ = !waiting_.empty();
  ledger_.peak_running = std::max(ledger_.peak_running, running());
  return batch_;
}

// Every request that decodes gets its token, then prompts get what is left, in order of arrival.
void ServingEngine::share_budget(std::int64_t& budget) {
  for (const SequencePtr& sequence : running_)
    if (sequence->missing() == 1) {
      sequence->planned = 1;
      --budget;
    }
  for (const SequencePtr& sequence : running_)
    if (sequence->missing() > 1) {
      sequence->planned = std::min(budget, sequence->missing());
      budget -= sequence->planned;
    }
}

// From the first that came on: whoever is preempted came later and has taken no block in this step yet.
void ServingEngine::continue_running() {
  for (std::size_t place = 0; place < running_.size(); ++place)
    if (running_[place]->planned > 0 && make_room(place)) add_row(*running_[place]);
}

// Whether the request still runs afterwards.
bool ServingEngine::make_room(std::size_t place) {
  const Sequence& sequence = *running_[place];
  while (pool_.blocks_to_append(sequence.record.id, sequence.planned) > pool_.available_blocks()) {
    preempt_latest();
    if (place == running_.size()) return false;
  }
  return true;
}

void ServingEngine::preempt_latest() {
  SequencePtr sequence = std::move(running_.back());
  running_.pop_back();
  pool_.free(sequence->record.id);
  release(*sequence);
  sequence->computed_before = std::max(sequence->computed_before, sequence->stored);
  sequence->stored = 0;
  sequence->planned = 0;
  sequence->runs = false;
  ++sequence->record.preemptions;
  ++ledger_.preemptions;
  waiting_.push_front(std::move(sequence));
}

void ServingEngine::admit(std::int64_t& budget) {
  while (budget > 0 && !waiting_.empty() && running() < config_.slots && !first_is_stuck_) {
    if (!admit_first(budget)) {
      first_is_stuck_ = true;
      return;
    }
    Sequence& sequence = *running_.back();
    budget -= sequence.planned;
    add_row(sequence);
  }
}

// Admits the first that waits where the pool has room for it: for all that it may store where the policy reserves, else
// for all its tokens, although a chunk takes no more than its own. So whoever has just been preempted does not come
// straight back: it needs the blocks that it gave up, and one of them is taken.
bool ServingEngine::admit_first(std::int64_t budget) {
  Sequence& sequence = *waiting_.front();
  const SequenceId id = sequence.record.id;
  const std::int64_t reservation = pool_.blocks_of(sequence.capacity());
  if (reserves_maximum(config_.policy) && reserved_blocks_ + reservation > config_.num_blocks) return false;
  const std::int64_t reused = pool_.submit(id, sequence.tokens, sequence.record.max_new - sequence.outputs());
  if (pool_.blocks_to_append(id, std::ssize(sequence.tokens) - reused) > pool_.available_blocks()) {
    pool_.abort(id);
    return false;
  }
  if (reserves_maximum(config_.policy)) reserved_blocks_ += reservation;
  if (!std::exchange(sequence.admitted, true)) sequence.record.reused_tokens = reused;
  ledger_.reused_tokens += reused;
  sequence.stored = reused;
  sequence.planned = std::min(budget, sequence.missing());
  sequence.runs = true;
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

void ServingEngine::add_row(Sequence& sequence) {
  const auto tokens =
      std::span<const TokenId>(sequence.tokens)
          .subspan(static_cast<std::size_t>(sequence.stored), static_cast<std::size_t>(sequence.planned));
  pool_.append(sequence.record.id, tokens);
  batch_.rows.push_back({.sequence = sequence.record.id,
                         .tokens = tokens,
                         .position = sequence.stored,
                         .table = pool_.table(sequence.record.id),
                         .samples = sequence.planned == sequence.missing()});
  batch_.tokens += sequence.planned;
  rows_.push_back(&sequence);
}

std::int64_t ServingEngine::padding() const {
  if (config_.policy != ServingPolicy::static_batch) return 0;
  std::int64_t longest = 0;
  for (const StepRow& row : batch_.rows) longest = std::max(longest, std::ssize(row.tokens));
  return batch_requests_ * longest - batch_.tokens;
}

}  // namespace inferometer
