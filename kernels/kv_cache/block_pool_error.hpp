// What a block pool refuses, as a type to tell faults apart and a sentence with the figures.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace inferometer {

enum class BlockPoolFault : std::uint8_t {
  wrong_size,        // a negative number of tokens
  empty_prompt,      // a sequence without a first token
  live_sequence,     // an id that is in use
  unknown_sequence,  // an id that is not, or no longer, in use: freed twice, for example
  unknown_block,     // no block of this pool
  never_fits,        // more blocks than the pool has, even alone in it
  past_capacity,     // more tokens than the sequence announced when it was submitted
  full,              // not so many blocks are free or cached now: wait, or end another sequence
  copies_pending,    // a step cannot have been computed, since its copies have not been made
  uncomputed,        // tokens of the sequence have not been computed yet: after step_done()
};

// Whoever throws it has changed nothing.
class BlockPoolError : public std::runtime_error {
 public:
  BlockPoolError(BlockPoolFault fault, const std::string& sentence) : std::runtime_error(sentence), fault_(fault) {}
  BlockPoolFault fault() const { return fault_; }

 private:
  BlockPoolFault fault_;
};

}  // namespace inferometer
