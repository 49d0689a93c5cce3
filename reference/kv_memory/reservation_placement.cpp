#include "reference/kv_memory/reservation_placement.hpp"

#include <stdexcept>
#include <string>

namespace inferometer {
namespace {

std::variant<SlotPool, BuddyPool> make_pool(const KvMemoryProblem& problem) {
  if (problem.contiguous == "buddy") return BuddyPool(problem.pool_slots());
  return SlotPool(problem.pool_slots());
}

}  // namespace

ReservationPlacement::ReservationPlacement(ReservationPolicy policy, const KvMemoryProblem& problem)
    : policy_(policy), max_length_(problem.max_length), pool_(make_pool(problem)) {}

bool ReservationPlacement::can_hold(const KvRequest& request) const {
  const std::int64_t slots = slots_for(request);
  const auto* const buddy = std::get_if<BuddyPool>(&pool_);
  return buddy != nullptr ? buddy->can_hold(slots) : slots <= std::get<SlotPool>(pool_).total_slots();
}

std::optional<KvRoom> ReservationPlacement::admit(const KvRequest& request, std::int64_t, bool) {
  const std::int64_t slots = slots_for(request);
  const auto first = std::visit([&](auto& pool) { return pool.reserve(slots); }, pool_);
  if (!first) return std::nullopt;
  first_slots_.emplace(request.id, *first);
  return KvRoom{.capacity = slots, .next_look = slots + 1};
}

std::optional<KvRoom> ReservationPlacement::extend(const KvRequest& request, std::int64_t tokens) {
  throw std::logic_error("request " + std::to_string(request.id) + " stores " + std::to_string(tokens) +
                         " tokens, more than it reserved");
}

void ReservationPlacement::release(const KvRequest& request, std::int64_t) {
  const auto range = first_slots_.find(request.id);
  std::visit([&](auto& pool) { pool.release(range->second); }, pool_);
  first_slots_.erase(range);
  ++releases_;
}

KvPoolState ReservationPlacement::state() const {
  const auto [total, free] =
      std::visit([](const auto& pool) { return std::pair(pool.total_slots(), pool.free_slots()); }, pool_);
  return {.taken = total - free, .contiguous = true};
}

std::int64_t ReservationPlacement::slots_for(const KvRequest& request) const {
  const std::int64_t slots = reserved_slots(policy_, request.prompt, request.output, max_length_);
  return std::holds_alternative<BuddyPool>(pool_) ? BuddyPool::size_for(slots) : slots;
}

}  // namespace inferometer
