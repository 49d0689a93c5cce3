#include "reference/kv_memory/slot_map.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace inferometer {

std::optional<std::int64_t> SlotMap::first_fit(std::int64_t slots) const {
  std::int64_t length = 0;
  for (std::size_t slot = 0; slot < used_.size(); ++slot) {
    length = used_[slot] ? 0 : length + 1;
    if (length == slots) return static_cast<std::int64_t>(slot) + 1 - slots;
  }
  return std::nullopt;
}

std::optional<std::int64_t> SlotMap::find_buddy(std::int64_t slots) const {
  std::optional<std::int64_t> best;
  std::int64_t best_size = 0;
  const auto visit = [&](const auto& self, std::int64_t first, std::int64_t size) -> void {
    const auto begin = used_.begin() + first;
    if (std::find(begin, begin + size, true) != begin + size) {
      if (size == 1) return;
      self(self, first, size / 2);
      self(self, first + size / 2, size / 2);
    } else if (size >= slots && (!best || size < best_size)) {
      best = first;
      best_size = size;
    }
  };
  const std::int64_t total = std::ssize(used_);
  for (std::int64_t first = 0; first < total;) {
    const auto size = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(total - first)));
    visit(visit, first, size);
    first += size;
  }
  return best;
}

void SlotMap::mark(std::int64_t first, std::int64_t slots, bool used) {
  std::fill_n(used_.begin() + first, slots, used);
}

}  // namespace inferometer
