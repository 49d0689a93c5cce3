// Contiguous KV caches in one memory: how many slots a sequence reserves at its start, and where they lie. What paging
// is measured against (Kwon et al., SOSP 2023, section 3.1 and figure 2). A slot holds the keys and values of a token.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reference/kv_cache/error.hpp"

namespace inferometer {

// The three reservations of the paper's Orca baselines.
enum class ReservationPolicy : std::uint8_t {
  maximum,       // the longest sequence that the model takes
  power_of_two,  // the prompt and the outputs rounded up to a power of two, at most the maximum
  oracle,        // exactly what will be used, known beforehand
};

// A request of `prompt` tokens that will produce `outputs` tokens stores prompt + outputs - 1: nothing reads the last
// one. Without outputs it stores nothing. Returns the slots it reserves.
// Throws KvCacheError: wrong_size for an empty prompt or negative outputs, never_fits when it stores more than
// `maximum`.
std::int64_t reserved_slots(ReservationPolicy policy, std::int64_t prompt, std::int64_t outputs, std::int64_t maximum);

// A memory of slots 0 to slots - 1, given out in contiguous ranges: first fit, with neighbouring gaps joined. Free
// slots that no request can use since they do not lie together are the paper's external fragmentation.
class SlotPool {
 public:
  explicit SlotPool(std::int64_t slots);  // throws ProblemError for less than one

  // The first slot of a range of so many in the lowest gap that is large enough; nothing when there is none now.
  // Throws KvCacheError: wrong_size for less than one slot, never_fits for more than the pool has.
  std::optional<std::int64_t> reserve(std::int64_t slots);
  void release(std::int64_t first);  // throws KvCacheError (not_owned) where no range starts

  std::int64_t total_slots() const { return total_; }
  std::int64_t free_slots() const { return free_; }
  std::int64_t largest_gap() const;  // slots; 0 when full
  std::int64_t ranges() const { return std::ssize(ranges_); }

  // A sentence for everything that does not hold: ranges and gaps tile the memory, no two gaps touch, the counts agree.
  std::vector<std::string> check_invariants() const;

  bool operator==(const SlotPool&) const = default;

 private:
  std::int64_t total_;
  std::int64_t free_;
  std::map<std::int64_t, std::int64_t> gaps_;    // first slot -> slots
  std::map<std::int64_t, std::int64_t> ranges_;  // first slot -> slots
};

}  // namespace inferometer
