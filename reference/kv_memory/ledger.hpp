// What became of every slot of the pool in every step, and of every request: whole numbers, so that sums can be exact.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace inferometer {

// In the order of the output tensor. A slot is the place of one token; a slot-step is one slot in one step.
enum class KvCount : std::uint8_t {
  pool_slots,
  steps,
  // The states of a slot, in slot-steps. They sum to pool_slots * steps.
  token,     // holds the keys and values of a token of a running request
  reserved,  // taken for a token that its request is still to store
  internal,  // taken for a request that will never fill it
  external,  // free, but in holes too small for the request whose turn it is, or cut off by the size of a block
  cached,    // no running request's, kept for a prompt that may begin with the same tokens; given up on demand
  free,
  // Beside the states, in slot-steps: slots that running requests would hold more if they did not share blocks.
  shared_saved,
  // Under load: steps in which a request waits, and in them the slot-steps with a token and the outputs computed.
  loaded_steps,
  loaded_token,
  loaded_generated,
  // Of requests.
  requests,      // in the trace
  refused,       // longer than the model or the pool allows, or without a prompt
  preemptions,   // a running request gave up all its slots, to be computed again
  peak_running,  // most requests that ran at once
  // Of tokens.
  prompt_tokens,   // of all requests of the trace
  output_tokens,   // of all requests of the trace
  refused_output,  // of those, outputs of refused requests
  generated,       // computed: one for each running request in each step, so their mean is generated / steps
  reused_prompt,   // found in the cache when their request was first admitted
  recomputed,      // lost to preemptions, whether or not the cache still held them afterwards
  count_of_counts
};

inline constexpr std::size_t kKvCounts = static_cast<std::size_t>(KvCount::count_of_counts);

// Three i32 limbs of 21 bits a count, the lowest first: exact as floats, and never all bits set as unwritten memory is.
inline constexpr std::size_t kKvLimbs = 3;

class KvLedger {
 public:
  std::int64_t operator[](KvCount count) const { return counts_[static_cast<std::size_t>(count)]; }
  std::int64_t& operator[](KvCount count) { return counts_[static_cast<std::size_t>(count)]; }
  bool operator==(const KvLedger&) const = default;

  std::int64_t slot_steps() const;  // sum of the states

  void write(std::span<std::int32_t> limbs) const;  // [kKvCounts, kKvLimbs]; throws std::out_of_range for a negative
  static KvLedger read(std::span<const std::int32_t> limbs);

 private:
  std::array<std::int64_t, kKvCounts> counts_{};
};

const char* name_of(KvCount count);

}  // namespace inferometer
