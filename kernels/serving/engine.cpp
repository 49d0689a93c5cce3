#include "kernels/serving/engine.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace inferometer {
namespace {

BlockPoolConfig pool_config(const ServingConfig& config) {
  check(config);
  return {.num_blocks = config.num_blocks,
          .block_size = config.block_size,
          .prefix_reuse = config.prefix_reuse,
          .explicit_steps = true};
}

}  // namespace

ServingEngine::ServingEngine(const ServingConfig& config) : config_(config), pool_(pool_config(config)) {
  ledger_.slots = config.slots;
}

void ServingEngine::submit(ServingRequest request) {
  check_fits(std::ssize(request.prompt), request.max_new);
  if (live_.contains(request.id))
    throw BlockPoolError(BlockPoolFault::live_sequence,
                         "request " + std::to_string(request.id) + " has been submitted already and has not ended");
  auto sequence = std::make_unique<Sequence>();
  sequence->record = {.id = request.id,
                      .arrival_ns = request.arrival_ns,
                      .prompt_tokens = std::ssize(request.prompt),
                      .max_new = request.max_new};
  sequence->number = submissions_;
  if (request.max_new == 0) {
    ended_.push_back(std::move(sequence->record));
  } else {
    // All that it will come to hold, so that no step allocates for it.
    const auto outputs = static_cast<std::size_t>(request.max_new);
    request.prompt.reserve(request.prompt.size() + outputs);
    sequence->record.token_ns.reserve(outputs);
    sequence->tokens = std::move(request.prompt);
    waiting_.push_back(std::move(sequence));
    live_.emplace(request.id, waiting_.back().get());
  }
  ++submissions_;
}

void ServingEngine::check_fits(std::int64_t prompt_tokens, std::int64_t max_new) const {
  pool_.check_fits(prompt_tokens, max_new);
  const std::int64_t stored = max_new == 0 ? 0 : prompt_tokens + max_new - 1;  // no more than the pool holds
  if (config_.max_length > 0 && stored > config_.max_length)
    throw BlockPoolError(BlockPoolFault::never_fits, "a prompt of " + std::to_string(prompt_tokens) +
                                                         " tokens and max_new " + std::to_string(max_new) + " store " +
                                                         std::to_string(stored) + " tokens; a request may store " +
                                                         std::to_string(config_.max_length));
}

bool ServingEngine::abort(SequenceId id) {
  const auto found = live_.find(id);
  if (found == live_.end() || found->second->aborted) return false;
  Sequence& sequence = *found->second;
  if (in_step_ && sequence.planned > 0) {  // the model reads its tokens and writes its blocks
    sequence.aborted = true;
    return true;
  }
  const auto is_it = [&](const SequencePtr& other) { return other.get() == &sequence; };
  if (sequence.runs) {
    pool_.abort(id);
    release(sequence);
    finish(sequence, RequestOutcome::aborted);
    running_.erase(std::ranges::find_if(running_, is_it));
  } else {
    const auto place = std::ranges::find_if(waiting_, is_it);
    if (place == waiting_.begin()) first_is_stuck_ = false;
    finish(sequence, RequestOutcome::aborted);
    waiting_.erase(place);
  }
  return true;
}

void ServingEngine::end_step(std::span<const TokenId> next, std::int64_t now_ns) {
  if (!in_step_) throw std::logic_error("end_step() without begin_step()");
  if (next.size() != rows_.size())
    throw std::invalid_argument("a step of " + std::to_string(rows_.size()) +
                                " rows must end with as many tokens, got " + std::to_string(next.size()));
  pool_.copies_made();
  pool_.step_done();
  count_slots();
  in_step_ = false;
  bool somebody_left = false;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    Sequence& sequence = *rows_[row];
    const std::int64_t begin = sequence.stored;
    sequence.stored += std::exchange(sequence.planned, 0);
    const std::int64_t again = std::max<std::int64_t>(0, std::min(sequence.stored, sequence.computed_before) - begin);
    sequence.record.recomputed_tokens += again;
    ledger_.recomputed_tokens += again;
    if (batch_.rows[row].samples && !sequence.aborted) {
      sequence.tokens.push_back(next[row]);
      sequence.record.token_ns.push_back(now_ns);
    }
    const bool completed = sequence.outputs() == sequence.record.max_new;
    if (!completed && !sequence.aborted) continue;
    pool_.free(sequence.record.id);
    release(sequence);
    finish(sequence, completed ? RequestOutcome::completed : RequestOutcome::aborted);
    sequence.runs = false;
    somebody_left = true;
  }
  if (somebody_left) std::erase_if(running_, [](const SequencePtr& sequence) { return !sequence->runs; });
}

std::vector<RequestRecord> ServingEngine::take_ended() { return std::exchange(ended_, {}); }

// Takes a sequence that has left the pool out of the accounts.
void ServingEngine::release(Sequence& sequence) {
  if (reserves_maximum(config_.policy)) reserved_blocks_ -= pool_.blocks_of(sequence.capacity());
  first_is_stuck_ = false;
}

void ServingEngine::finish(Sequence& sequence, RequestOutcome outcome) {
  const auto outputs = std::span(sequence.tokens).subspan(static_cast<std::size_t>(sequence.record.prompt_tokens));
  sequence.record.outputs.assign(outputs.begin(), outputs.end());
  sequence.record.outcome = outcome;
  live_.erase(sequence.record.id);
  ended_.push_back(std::move(sequence.record));
}

void ServingEngine::count_slots() {
  std::int64_t working = 0;
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    ++(rows_[row]->aborted ? ledger_.discarded : batch_.rows[row].samples ? ledger_.producing : ledger_.prefilling);
    ++working;
  }
  const std::int64_t ended = config_.policy == ServingPolicy::static_batch ? batch_requests_ - running() : 0;
  const std::int64_t empty = config_.slots - running() - ended;
  ledger_.stalled += running() - working;
  ledger_.ended += ended;
  (somebody_waits_ ? ledger_.blocked : ledger_.idle) += empty;
  ++ledger_.steps;
  ledger_.computed_tokens += batch_.tokens;
  ledger_.padding_tokens += batch_.padding_tokens;
  const BlockPoolUsage usage = pool_.usage();
  const std::int64_t taken =
      config_.block_size * (reserves_maximum(config_.policy) ? reserved_blocks_ : usage.owned_blocks);
  ledger_.kv_token_steps += usage.tokens;
  ledger_.kv_taken_steps += taken;
  ledger_.kv_taken_peak = std::max(ledger_.kv_taken_peak, taken);
}

}  // namespace inferometer
