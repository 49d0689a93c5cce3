#include "reference/kv_memory/simulation.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <stdexcept>
#include <string>

namespace inferometer {

Simulation::Simulation(const KvMemoryProblem& problem, KvPlacement& policy)
    : policy_(policy), waiting_(problem, policy, ledger_) {
  ledger_[KvCount::pool_slots] = problem.pool_slots();
}

KvLedger Simulation::run() {
  while (true) {
    preempted_ = false;
    look_at_due();
    waiting_.take_arrived(step_);
    if (!preempted_) admit_waiting();
    if (!running_.empty()) {
      count(1);
      continue;
    }
    const std::optional<std::int64_t> arrival = waiting_.next_arrival();
    if (!arrival) return ledger_;
    count(*arrival - step_);
  }
}

// Leaving comes first, so that the slots of those that have ended serve all others.
void Simulation::look_at_due() {
  const std::vector<Event>& due = wheel_.due(step_);
  const auto is_valid = [&](const Event& event) {
    return running_.contains({event.id, event.place}) && places_[event.place].admitted == event.admitted;
  };
  for (const Event& event : due) {
    if (!is_valid(event) || places_[event.place].end != step_) continue;
    sums_.tokens -= places_[event.place].was.request.stored();
    leave(event.place, places_[event.place].was.request.stored());
  }
  sums_.tokens += std::ssize(running_);
  for (const Event& event : due)
    if (is_valid(event) && make_room(event)) schedule(event.place);
  wheel_.clear(step_);
}

// For the token that the step before produced. False: the request was preempted itself.
bool Simulation::make_room(const Event& event) {
  Running& running = places_[event.place];
  const std::int64_t tokens = running.tokens(step_);
  if (tokens < running.room.next_look) return true;
  std::optional<KvRoom> room = policy_.extend(running.was.request, tokens);
  while (!room) {
    const bool itself = std::prev(running_.end())->second == event.place;
    preempt_last();
    if (itself) return false;
    room = policy_.extend(running.was.request, tokens);
  }
  set_room(running, *room);
  return true;
}

void Simulation::preempt_last() {
  const std::size_t place = std::prev(running_.end())->second;
  const std::int64_t tokens = places_[place].tokens(step_);
  sums_.tokens -= tokens;
  ledger_[KvCount::recomputed] += tokens - 1;  // the last one was produced, but never stored
  ++ledger_[KvCount::preemptions];
  preempted_ = true;
  WaitingRequest waiting = leave(place, tokens - 1);
  waiting.generated = tokens - waiting.request.prompt;
  waiting_.put_back(std::move(waiting));
}

void Simulation::admit_waiting() {
  while (!waiting_.empty() && admit_head()) waiting_.take_arrived(step_);
}

bool Simulation::admit_head() {
  const WaitingRequest& head = waiting_.head();
  if (head.request.id == tried_id_ && policy_.version() == tried_version_) return false;
  const std::optional<KvRoom> room = policy_.admit(head.request, head.tokens(), running_.empty());
  if (!room) {
    if (running_.empty())
      throw std::logic_error("request " + std::to_string(head.request.id) + " finds no room in an empty pool");
    tried_id_ = head.request.id;
    tried_version_ = policy_.version();
    return false;
  }
  tried_id_ = -1;
  if (head.generated == 0) ledger_[KvCount::reused_prompt] += room->reused;
  if (empty_places_.empty()) {
    empty_places_.push_back(places_.size());
    places_.emplace_back();
  }
  const std::size_t place = empty_places_.back();
  empty_places_.pop_back();
  Running& running = places_[place] = {.was = waiting_.take_head(), .admitted = step_};
  running.end = step_ + running.was.request.output - running.was.generated;
  running_.emplace(running.was.request.id, place);
  sums_.tokens += running.was.tokens();
  set_room(running, *room);
  schedule(place);
  return true;
}

void Simulation::set_room(Running& running, const KvRoom& room) {
  const std::int64_t fillable = std::min(room.capacity, running.was.request.stored());
  sums_.capacity += room.capacity - running.room.capacity;
  sums_.fillable += fillable - running.fillable;
  running.room = room;
  running.fillable = fillable;
}

void Simulation::schedule(std::size_t place) {
  const Running& running = places_[place];
  const std::int64_t look = step_ + running.room.next_look - running.tokens(step_);
  wheel_.add(step_, std::min(look, running.end), {running.was.request.id, running.admitted, place});
}

WaitingRequest Simulation::leave(std::size_t place, std::int64_t computed_tokens) {
  Running& running = places_[place];
  policy_.release(running.was.request, computed_tokens);
  set_room(running, {});
  running_.erase({running.was.request.id, place});
  empty_places_.push_back(place);
  return std::move(running.was);
}

void Simulation::count(std::int64_t steps) {
  const KvPoolState state = policy_.state();
  const std::int64_t slots = ledger_[KvCount::pool_slots];
  const std::int64_t saved = sums_.capacity - state.taken;
  const std::int64_t free = slots - state.taken - state.cached - state.cut_off;
  const bool in_holes = state.contiguous && !waiting_.empty();
  const auto running = std::ssize(running_);
  std::int64_t slot_steps = 0;
  if (__builtin_add_overflow(step_, steps, &step_) || __builtin_mul_overflow(slots, step_, &slot_steps))
    throw std::overflow_error("more slot-steps than 2^63 - 1");
  ledger_[KvCount::steps] = step_;
  ledger_[KvCount::token] += steps * (sums_.tokens - saved);
  ledger_[KvCount::reserved] += steps * (sums_.fillable - sums_.tokens);
  ledger_[KvCount::internal] += steps * (sums_.capacity - sums_.fillable);
  ledger_[KvCount::external] += steps * (state.cut_off + (in_holes ? free : 0));
  ledger_[KvCount::cached] += steps * state.cached;
  ledger_[KvCount::free] += steps * (in_holes ? 0 : free);
  ledger_[KvCount::shared_saved] += steps * saved;
  if (!waiting_.empty()) {
    ledger_[KvCount::loaded_steps] += steps;
    ledger_[KvCount::loaded_token] += steps * (sums_.tokens - saved);
    ledger_[KvCount::loaded_generated] += steps * running;
  }
  ledger_[KvCount::generated] += steps * running;
  ledger_[KvCount::peak_running] = std::max(ledger_[KvCount::peak_running], running);
}

void simulate(const KvMemoryProblem& problem, KvPlacement& policy, const KvMemoryTensors& tensors) {
  Simulation(problem, policy).run().write({tensors.ledger, kKvCounts * kKvLimbs});
}

}  // namespace inferometer
