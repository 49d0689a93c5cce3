// A binary buddy allocator of slots (Knowlton, CACM 1965), which the PagedAttention paper assumes of its Orca
// baselines: a request gets a range whose size is the next power of two, at a multiple of it. What first fit would
// leave as holes between ranges lies inside them instead, or in halves without their buddy.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace inferometer {

class BuddyPool {
 public:
  // Any number of slots from 1 up: the largest powers of two that fit, one after the other.
  explicit BuddyPool(std::int64_t slots);

  // The slots that a range for `slots` takes: the next power of two.
  static std::int64_t size_for(std::int64_t slots);
  // Whether the empty pool has such a range.
  bool can_hold(std::int64_t slots) const;

  // The first slot of a range of size_for(slots): of the smallest free ranges that are large enough the lowest.
  std::optional<std::int64_t> reserve(std::int64_t slots);
  void release(std::int64_t first);  // throws KvCacheError (not_owned) where no range starts

  std::int64_t total_slots() const { return total_; }
  std::int64_t free_slots() const { return free_; }

 private:
  std::int64_t total_;
  std::int64_t free_ = 0;
  std::vector<std::set<std::int64_t>> free_ranges_;  // by the logarithm of their size: their first slots
  std::map<std::int64_t, std::int64_t> ranges_;      // first slot -> size
};

}  // namespace inferometer
