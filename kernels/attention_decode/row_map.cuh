// Where a token's K and V lie: the only difference between a contiguous and a paged cache.
//
// A cache is an array of rows, one a token (for codes: one a token and KV head). Rows are 32-bit (2^32 rows would pass
// 68 GB); the byte offsets made from them are 64-bit.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"

namespace inferometer::decode {

// The rows of one KV head of one sequence.
class RowMap {
 public:
  __device__ RowMap(const DecodeArgs& args, int sequence, int kv_head)
      : args_(args), table_(args.block_table), first_row_(args.rows_per_head * static_cast<std::uint32_t>(kv_head)) {
    if (is_paged()) {
      table_ += static_cast<std::int64_t>(sequence) * args.max_blocks;
    } else {
      first_row_ += args.rows_per_block * static_cast<std::uint32_t>(sequence);
    }
  }

  __device__ bool is_paged() const { return table_ != nullptr; }

  // Where the block table names the block of a token; null past its end.
  __device__ const std::int32_t* table_entry(int token) const {
    const auto block = static_cast<int>(args_.block_tokens.quotient(token));
    return block < args_.max_blocks ? table_ + block : nullptr;
  }

  // Of a token that exists. `block`: what its entry of the table says; unused for a contiguous cache.
  __device__ std::uint32_t row(int token, std::uint32_t block) const {
    if (!is_paged()) return first_row_ + static_cast<std::uint32_t>(token);
    const FastDivide& tokens = args_.block_tokens;
    return first_row_ + block * args_.rows_per_block +
           (static_cast<std::uint32_t>(token) - tokens.quotient(token) * tokens.divisor());
  }

 private:
  const DecodeArgs& args_;
  const std::int32_t* table_;  // of this sequence; null: contiguous
  std::uint32_t first_row_;
};

}  // namespace inferometer::decode
