#include "reference/kv_cache/reservation.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

using Range = std::pair<const std::int64_t, std::int64_t>;  // first slot, slots

std::int64_t end_of(const Range& range) { return range.first + range.second; }

std::string describe(const Range& range) {
  return std::to_string(range.second) + " slots from " + std::to_string(range.first);
}

}  // namespace

std::int64_t reserved_slots(ReservationPolicy policy, std::int64_t prompt, std::int64_t outputs, std::int64_t maximum) {
  if (prompt < 1)
    throw KvCacheError(KvCacheFault::wrong_size, "a prompt must have at least 1 token, got " + std::to_string(prompt));
  if (outputs < 0)
    throw KvCacheError(KvCacheFault::wrong_size, "outputs must not be negative, got " + std::to_string(outputs));
  if (outputs == 0) return 0;
  if (prompt > maximum || outputs - 1 > maximum - prompt)
    throw KvCacheError(KvCacheFault::never_fits,
                       "a prompt of " + std::to_string(prompt) + " tokens and " + std::to_string(outputs) +
                           " outputs store more than the maximum of " + std::to_string(maximum) + " tokens");
  switch (policy) {
    case ReservationPolicy::maximum: return maximum;
    case ReservationPolicy::power_of_two: {
      // Unsigned: the next power of two of an int64 may be 2^63.
      const std::uint64_t rounded = std::bit_ceil(static_cast<std::uint64_t>(outputs));
      const auto limit = static_cast<std::uint64_t>(maximum);
      return static_cast<std::int64_t>(std::min(limit, static_cast<std::uint64_t>(prompt) + rounded - 1));
    }
    case ReservationPolicy::oracle: return prompt + outputs - 1;
  }
  throw KvCacheError(KvCacheFault::wrong_size, "unknown reservation policy");
}

SlotPool::SlotPool(std::int64_t slots) : total_(slots), free_(slots) {
  if (slots < 1) throw ProblemError("slots", "slots must be at least 1, got " + std::to_string(slots));
  gaps_.emplace(0, slots);
}

std::optional<std::int64_t> SlotPool::reserve(std::int64_t slots) {
  if (slots < 1) throw KvCacheError(KvCacheFault::wrong_size, "slots must be at least 1, got " + std::to_string(slots));
  if (slots > total_)
    throw KvCacheError(KvCacheFault::never_fits,
                       "a range of " + std::to_string(slots) + " slots; the pool has " + std::to_string(total_));
  const auto gap = std::ranges::find_if(gaps_, [&](const Range& range) { return range.second >= slots; });
  if (gap == gaps_.end()) return std::nullopt;
  const std::int64_t first = gap->first;
  ranges_.emplace(first, slots);  // the only step that may throw, so the first
  auto node = gaps_.extract(gap);
  node.key() += slots;
  node.mapped() -= slots;
  if (node.mapped() > 0) gaps_.insert(std::move(node));
  free_ -= slots;
  return first;
}

void SlotPool::release(std::int64_t first) {
  auto node = ranges_.extract(first);
  if (node.empty())
    throw KvCacheError(KvCacheFault::not_owned,
                       "no range starts at slot " + std::to_string(first) + ": never reserved, or released already");
  free_ += node.mapped();
  auto gap = gaps_.insert(std::move(node)).position;
  if (gap != gaps_.begin() && end_of(*std::prev(gap)) == gap->first) {
    std::prev(gap)->second += gap->second;
    gap = std::prev(gaps_.erase(gap));
  }
  if (const auto next = std::next(gap); next != gaps_.end() && end_of(*gap) == next->first) {
    gap->second += next->second;
    gaps_.erase(next);
  }
}

std::int64_t SlotPool::largest_gap() const {
  std::int64_t largest = 0;
  for (const auto& [first, slots] : gaps_) largest = std::max(largest, slots);
  return largest;
}

std::vector<std::string> SlotPool::check_invariants() const {
  std::vector<std::string> broken;
  std::map<std::int64_t, std::int64_t> all = gaps_;
  for (const Range& range : ranges_)
    if (!all.insert(range).second) broken.push_back(describe(range) + " are both free and reserved");
  std::int64_t covered = 0;
  for (const Range& range : all) {
    if (range.first != covered || range.second < 1)
      broken.push_back(describe(range) + " follow those that end at " + std::to_string(covered));
    covered = end_of(range);
  }
  if (covered != total_)
    broken.push_back("the ranges and gaps end at " + std::to_string(covered) + " of " + std::to_string(total_));
  std::int64_t free = 0;
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    free += gap->second;
    if (const auto next = std::next(gap); next != gaps_.end() && end_of(*gap) == next->first)
      broken.push_back("the gaps of " + describe(*gap) + " and " + describe(*next) + " are not joined");
  }
  if (free != free_)
    broken.push_back(std::to_string(free_) + " slots are said to be free, " + std::to_string(free) + " are");
  return broken;
}

}  // namespace inferometer
