// The contiguous policies: a request reserves its slots when it is admitted and keeps them to its end.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <variant>

#include "reference/kv_cache/reservation.hpp"
#include "reference/kv_memory/buddy_pool.hpp"
#include "reference/kv_memory/problem.hpp"

namespace inferometer {

class ReservationPlacement : public KvPlacement {
 public:
  ReservationPlacement(ReservationPolicy policy, const KvMemoryProblem& problem);

  bool can_hold(const KvRequest& request) const override;
  std::optional<KvRoom> admit(const KvRequest& request, std::int64_t tokens, bool alone) override;
  std::optional<KvRoom> extend(const KvRequest& request, std::int64_t tokens) override;
  void release(const KvRequest& request, std::int64_t tokens) override;
  KvPoolState state() const override;
  std::int64_t version() const override { return releases_; }

 private:
  std::int64_t slots_for(const KvRequest& request) const;  // that it takes from the pool

  ReservationPolicy policy_;
  std::int64_t max_length_;
  std::variant<SlotPool, BuddyPool> pool_;
  std::unordered_map<std::int64_t, std::int64_t> first_slots_;  // request id -> where its range starts
  std::int64_t releases_ = 0;
};

}  // namespace inferometer
