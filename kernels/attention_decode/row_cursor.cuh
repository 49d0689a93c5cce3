// Where a token's K and V lie: the only difference between a contiguous and a paged cache.
//
// A cache is an array of rows, one a token (for codes: one a token and KV head). A cursor belongs to one lane; it
// visits tokens first, first + step, first + 2 step, ... of one sequence and names the row of each. Rows are 32-bit
// (2^32 rows would pass 68 GB); the byte offsets made from them are 64-bit.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"

namespace inferometer::decode {

class RowCursor {
 public:
  __device__ RowCursor(const DecodeArgs& args, int sequence, int kv_head, int first, int step)
      : table_(args.block_table),
        head_row_(args.rows_per_head * static_cast<std::uint32_t>(kv_head)),
        rows_per_block_(args.rows_per_block),
        block_tokens_(static_cast<int>(args.block_tokens.divisor())) {
    if (table_ == nullptr) {
      block_ = sequence;
      slot_ = first;
      step_slots_ = step;
      return;
    }
    table_ += static_cast<std::int64_t>(sequence) * args.max_blocks;
    blocks_ = args.max_blocks;
    block_ = static_cast<int>(args.block_tokens.quotient(first));
    slot_ = first - block_ * block_tokens_;
    step_blocks_ = static_cast<int>(args.block_tokens.quotient(step));
    step_slots_ = step - step_blocks_ * block_tokens_;
  }

  // A token whose entry of the block table has been asked for and not looked at.
  struct Token {
    std::int32_t block;
    std::int32_t slot;
  };

  // The current token; then moves on. Reads the table only where it is, so a token past the sequence's end is fine.
  __device__ Token next() {
    if (table_ == nullptr) {
      const Token token = {block_, slot_};
      slot_ += step_slots_;
      return token;
    }
    const Token token = {block_ < blocks_ ? __ldg(table_ + block_) : 0, slot_};
    block_ += step_blocks_;
    slot_ += step_slots_;
    if (slot_ >= block_tokens_) {
      slot_ -= block_tokens_;
      ++block_;
    }
    return token;
  }

  // The token's row; row 0 for one that does not `exist`, whose entry may be stale and is not followed.
  __device__ std::uint32_t row(Token token, bool exists) const {
    return exists ? static_cast<std::uint32_t>(token.block) * rows_per_block_ + head_row_ +
                        static_cast<std::uint32_t>(token.slot)
                  : 0;
  }

 private:
  const std::int32_t* table_;  // of this sequence; null: contiguous
  std::uint32_t head_row_;
  std::uint32_t rows_per_block_;
  int block_tokens_;
  int blocks_ = 0;
  int block_ = 0;  // column of the table; contiguous: the sequence
  int slot_ = 0;
  int step_blocks_ = 0;
  int step_slots_ = 0;
};

}  // namespace inferometer::decode
