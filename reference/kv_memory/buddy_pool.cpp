#include "reference/kv_memory/buddy_pool.hpp"

#include <bit>
#include <cstddef>
#include <string>

#include "harness/operator/fields.hpp"
#include "reference/kv_cache/error.hpp"

namespace inferometer {
namespace {

std::size_t log2_of(std::int64_t size) {  // a power of two
  return static_cast<std::size_t>(std::countr_zero(static_cast<std::uint64_t>(size)));
}

}  // namespace

BuddyPool::BuddyPool(std::int64_t slots) : total_(slots), free_(slots) {
  if (slots < 1) throw ProblemError("slots", "slots must be at least 1, got " + std::to_string(slots));
  free_ranges_.resize(static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(slots))));
  for (std::int64_t first = 0; first < slots;) {
    const auto size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(slots - first)));
    free_ranges_[log2_of(size)].insert(first);
    first += size;
  }
}

std::int64_t BuddyPool::size_for(std::int64_t slots) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(slots)));
}

bool BuddyPool::can_hold(std::int64_t slots) const { return slots <= total_ && size_for(slots) <= total_; }

std::optional<std::int64_t> BuddyPool::reserve(std::int64_t slots) {
  if (!can_hold(slots)) return std::nullopt;
  const std::int64_t size = size_for(slots);
  std::size_t level = log2_of(size);
  while (level < free_ranges_.size() && free_ranges_[level].empty()) ++level;
  if (level == free_ranges_.size()) return std::nullopt;
  const std::int64_t first = *free_ranges_[level].begin();
  free_ranges_[level].erase(free_ranges_[level].begin());
  while (std::int64_t{1} << level > size) {  // halve it; the upper half stays free
    --level;
    free_ranges_[level].insert(first + (std::int64_t{1} << level));
  }
  ranges_.emplace(first, size);
  free_ -= size;
  return first;
}

void BuddyPool::release(std::int64_t first) {
  const auto range = ranges_.find(first);
  if (range == ranges_.end())
    throw KvCacheError(KvCacheFault::not_owned,
                       "no range starts at slot " + std::to_string(first) + ": never reserved, or released already");
  std::int64_t size = range->second;
  ranges_.erase(range);
  free_ += size;
  // Join it with its buddy as long as that is free as a whole.
  for (std::size_t level = log2_of(size); free_ranges_[level].erase(first ^ size) != 0; ++level, size *= 2)
    first &= ~size;
  free_ranges_[log2_of(size)].insert(first);
}

}  // namespace inferometer
