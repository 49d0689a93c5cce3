// A step's batch as the arrays that the kernels read: the same on the host, where they are filled, and on the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/serving/step_batch.hpp"

namespace inferometer::decoder {

// Room in the arrays.
struct StepSizes {
  std::int64_t tokens = 1;
  std::int64_t rows = 1;
  std::int64_t max_blocks = 1;  // columns of the block table
  std::int64_t block_size = 1;
  std::int64_t num_blocks = 1;  // of the pool
  std::int64_t vocabulary = 1;
};

// Rows with a single token come first, then chunks; tokens in the order of their rows.
struct StepArrays {
  std::uint64_t* keys = nullptr;          // [rows]  of a sequence's random draws, in the order of sample_tokens
  std::int32_t* ids = nullptr;            // [tokens]
  std::int32_t* positions = nullptr;      // [tokens]
  std::int32_t* token_rows = nullptr;     // [tokens]  row of the token
  std::int32_t* lengths = nullptr;        // [rows]  tokens in the cache after the step
  std::int32_t* chunk_queries = nullptr;  // [rows + 1]  tokens of chunks before each chunk
  std::int32_t* chunk_keys = nullptr;     // [rows + 1]  likewise cached tokens of their sequences
  std::int32_t* sample_tokens = nullptr;  // [rows]  the tokens that logits are computed for
  std::int32_t* sample_places = nullptr;  // [rows]  and the rows of the batch that they belong to
  std::int32_t* table = nullptr;          // [rows, max_blocks]
};

// The arrays one after the other from `base` on, which is 16-byte aligned; the table last.
StepArrays arrays_at(std::byte* base, const StepSizes& sizes);
// Bytes of all of them, with so many rows of the table.
std::size_t step_bytes(const StepSizes& sizes, std::int64_t table_rows);

// What a launch must know of a step.
struct StepPlan {
  std::int64_t tokens = 0;
  std::int64_t rows = 0;
  std::int64_t single_rows = 0;                // with one token
  std::int64_t longest_single = 0;             // tokens of the longest of their sequences, after the step
  std::int64_t room = 0;                       // tokens for which every row's table still has slots, after the step
  std::vector<std::int64_t> chunk_q = {};      // tokens of each chunk
  std::vector<std::int64_t> chunk_kv = {};     // and of its sequence, after the step
  std::vector<std::int64_t> chunk_block = {};  // and the first block of its sequence
  std::vector<std::int64_t> places = {};       // rows of the batch that sample, in the order of their logits
  std::vector<std::int64_t> order = {};        // rows of the batch, in the order of the arrays

  std::int64_t chunks() const { return rows - single_rows; }
  bool all_single() const { return single_rows == rows; }
  bool all_sample() const { return static_cast<std::int64_t>(places.size()) == rows; }
};

// Throws ProblemError naming the field for a batch that there is no room for, or that cannot be: no row, a row without
// tokens, ids outside the vocabulary, tables that are too short, blocks outside the pool.
StepPlan fill_step(const StepBatch& batch, const StepSizes& sizes, std::uint64_t seed, const StepArrays& to);

// Fills rows plan.rows to `rows` - 1 of a step of single tokens with padding: no token, no place, no cached keys.
void pad_rows(const StepPlan& plan, const StepSizes& sizes, std::int64_t rows, const StepArrays& to);

// The step after `plan`, in which every row decodes the token that it sampled; its ids are the device's to fill in.
// `arrays` hold the step of `plan`.
StepPlan advance_step(const StepPlan& plan, const StepSizes& sizes, const StepArrays& arrays);

// Rows to which a step of single tokens is padded, so that few graphs serve all batches.
std::int64_t row_bucket(std::int64_t rows);
// Length for which the attention of single rows is planned: the next of four steps to an octave.
std::int64_t length_bucket(std::int64_t length);

}  // namespace inferometer::decoder
