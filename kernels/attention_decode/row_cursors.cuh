// Where a token's K and V lie: the only difference between the contiguous and the paged kernel.
//
// Both caches are arrays of rows [rows, kv_heads, head_dim], one row a token. A cursor belongs to one lane; it visits
// tokens first, first + step, first + 2 step, ... of one sequence and names the row of each. Rows are 32-bit (a cache
// of 2^32 rows would pass 1 TB); the byte offset made from them is 64-bit.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"

namespace inferometer {

// [batch, capacity, ...]: token t of sequence b is row b * capacity + t.
class ContiguousRows {
 public:
  __device__ ContiguousRows(const DecodeArgs& args, int sequence, int first, int step)
      : row_(static_cast<std::uint32_t>(sequence) * static_cast<std::uint32_t>(args.capacity) +
             static_cast<std::uint32_t>(first)),
        step_(static_cast<std::uint32_t>(step)) {}

  // Row of the current token, then moves on. With `exists` false the token is past the end, and the row is 0.
  __device__ std::uint32_t next(bool exists) {
    const std::uint32_t row = exists ? row_ : 0;
    row_ += step_;
    return row;
  }

 private:
  std::uint32_t row_;
  std::uint32_t step_;
};

// [num_blocks, block_size, ...]: token t is row t % block_size of block table[t / block_size].
class BlockTableRows {
 public:
  __device__ BlockTableRows(const DecodeArgs& args, int sequence, int first, int step)
      : entry_(args.block_table + static_cast<std::int64_t>(sequence) * args.max_blocks + first / args.block_size),
        slot_(first % args.block_size),
        block_size_(args.block_size),
        step_blocks_(step / args.block_size),
        step_slots_(step % args.block_size) {}

  // As above; the table is not read for tokens past the end, whose entries may be -1 or past the table.
  __device__ std::uint32_t next(bool exists) {
    const std::uint32_t row =
        exists ? static_cast<std::uint32_t>(__ldg(entry_)) * static_cast<std::uint32_t>(block_size_) +
                     static_cast<std::uint32_t>(slot_)
               : 0;
    entry_ += step_blocks_;
    slot_ += step_slots_;
    if (slot_ >= block_size_) {
      slot_ -= block_size_;
      ++entry_;
    }
    return row;
  }

 private:
  const std::int32_t* entry_;
  int slot_;
  int block_size_;
  int step_blocks_;
  int step_slots_;
};

}  // namespace inferometer
