// Where a new token goes: the only difference between the contiguous and the paged kernels.
//
// Both caches are arrays of areas of `span` slots, one slot a token. In a contiguous cache an area is a sequence with
// room for its capacity, in a paged one it is a block. With kv_bits 16 a slot holds all heads of its token; quantised,
// an area holds one head after the other, each with all its slots.
#pragma once

#include <cstdint>

#include "kernels/kv_append/append_args.hpp"

namespace inferometer::append {

struct Slot {
  std::uint32_t area;
  std::uint32_t index;  // within the area
};

// Sequence of a new token, and which token of it that is.
struct Position {
  std::uint32_t sequence;
  std::uint32_t token;
};

__device__ __forceinline__ Position position_of(const AppendArgs& args, std::uint32_t new_token) {
  const std::uint32_t sequence = args.new_tokens.quotient(new_token);
  const auto stored = static_cast<std::uint32_t>(args.seq_lens[sequence]);
  return {sequence, stored + args.new_tokens.remainder(new_token, sequence)};
}

// [batch, capacity, ...]
struct ContiguousSlots {
  static __device__ __forceinline__ Slot at(const AppendArgs&, const Position& position) {
    return {position.sequence, position.token};
  }
};

// [num_blocks, block_size, ...]; blocks of a sequence in the order of its row of the block table.
struct PagedSlots {
  static __device__ __forceinline__ Slot at(const AppendArgs& args, const Position& position) {
    const std::uint32_t page = args.span.quotient(position.token);
    const std::int64_t entry = std::int64_t{position.sequence} * args.max_blocks + page;
    return {static_cast<std::uint32_t>(args.block_table[entry]), args.span.remainder(position.token, page)};
  }
};

}  // namespace inferometer::append
