#include <algorithm>
#include <string>

#include "kernels/serving/engine.hpp"

namespace inferometer {

std::vector<std::string> ServingEngine::check_invariants() const {
  std::vector<std::string> broken = pool_.check_invariants();
  check_sequences(broken);
  if (ledger_.slot_steps() != ledger_.slots * ledger_.steps)
    broken.push_back("the states of slots sum to " + std::to_string(ledger_.slot_steps()) + " slot-steps, " +
                     std::to_string(ledger_.steps) + " steps of " + std::to_string(ledger_.slots) + " slots have " +
                     std::to_string(ledger_.slots * ledger_.steps));
  std::int64_t reserved = 0;
  if (reserves_maximum(config_.policy))
    for (const SequencePtr& sequence : running_) reserved += pool_.blocks_of(sequence->capacity());
  if (reserved != reserved_blocks_ || reserved > config_.num_blocks)
    broken.push_back(std::to_string(reserved_blocks_) + " of " + std::to_string(config_.num_blocks) +
                     " blocks are said to be reserved, by requests that run " + std::to_string(reserved) + " are");
  return broken;
}

void ServingEngine::check_sequences(std::vector<std::string>& broken) const {
  if (running() > config_.slots)
    broken.push_back(std::to_string(running()) + " requests run in " + std::to_string(config_.slots) + " slots");
  if (pool_.usage().sequences != running())
    broken.push_back("the pool has " + std::to_string(pool_.usage().sequences) + " sequences, " +
                     std::to_string(running()) + " requests run");
  if (std::ssize(live_) != running() + waiting())
    broken.push_back(std::to_string(live_.size()) + " requests have ids, " + std::to_string(running() + waiting()) +
                     " run or wait");
  std::int64_t last = -1;
  const auto check = [&](const Sequence& sequence, bool runs) {
    const std::string name = "request " + std::to_string(sequence.record.id);
    const auto found = live_.find(sequence.record.id);
    if (found == live_.end() || found->second != &sequence) broken.push_back(name + " is not found by its id");
    if (sequence.number <= last) broken.push_back(name + " came before one in front of it");
    last = sequence.number;
    if (sequence.runs != runs) broken.push_back(name + " does not know whether it runs");
    if (sequence.missing() < 1) broken.push_back(name + " has no token to compute");
    if (sequence.record.token_ns.size() != static_cast<std::size_t>(sequence.outputs()))
      broken.push_back(name + " has not a time for every output");
    const std::int64_t length = sequence.stored + sequence.planned;
    if (!runs && length != 0) broken.push_back(name + " waits, yet has tokens in the cache");
    if (runs && (!pool_.contains(sequence.record.id) || pool_.length(sequence.record.id) != length))
      broken.push_back(name + " has not " + std::to_string(length) + " tokens in the pool");
  };
  for (const SequencePtr& sequence : running_) check(*sequence, true);
  for (const SequencePtr& sequence : waiting_) check(*sequence, false);
}

}  // namespace inferometer
