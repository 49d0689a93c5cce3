// Which slots of a contiguous pool are in use, one by one: where the recount looks for room, by reading all of them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace inferometer {

class SlotMap {
 public:
  explicit SlotMap(std::int64_t slots) : used_(static_cast<std::size_t>(slots)) {}

  // The first of so many free slots in a row, the lowest there is.
  std::optional<std::int64_t> first_fit(std::int64_t slots) const;
  // The first slot of a free range of a power of two, at a multiple of its size within the largest powers of two that
  // the pool is made of: of those not within a larger free one, and large enough, the smallest, and of these the
  // lowest.
  std::optional<std::int64_t> find_buddy(std::int64_t slots) const;
  void mark(std::int64_t first, std::int64_t slots, bool used);

 private:
  std::vector<bool> used_;
};

}  // namespace inferometer
