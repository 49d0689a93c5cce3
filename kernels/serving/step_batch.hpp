// What one step of a serving engine computes, as a decoder takes it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"

namespace inferometer {

// Tokens of one sequence: one that decodes, or a prompt or a chunk of it.
struct StepRow {
  SequenceId sequence = 0;
  std::span<const TokenId> tokens = {};      // to compute; at least one
  std::int64_t position = 0;                 // of the first of them: so many tokens of the sequence are in the cache
  std::span<const std::int32_t> table = {};  // blocks of all its tokens, these included
  bool samples = false;  // whether the last of them is the sequence's last: the next token is asked for
};

struct StepBatch {
  // Rows that go on first, in order of arrival, then those that join.
  std::vector<StepRow> rows;
  std::span<const BlockCopy> copies =
      {};                   // to be made before any row is computed; none unless sequences share a last block
  std::int64_t tokens = 0;  // of all rows
  // What a batch that is a rectangle would compute in vain (static): rows of requests that have ended already, and
  // prompts made as long as the longest. Counted only, for decoders compute what rows have. Other policies pad nothing.
  std::int64_t padding_tokens = 0;
};

}  // namespace inferometer
