#include "kernels/decoder/step_inputs.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <string>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer::decoder {
namespace {

constexpr std::int64_t kAlignWords = 4;  // 16 bytes

std::int64_t aligned(std::int64_t words) { return (words + kAlignWords - 1) / kAlignWords * kAlignWords; }

std::int64_t words_before_table(const StepSizes& sizes) {
  return 2 * aligned(sizes.rows) + 3 * aligned(sizes.tokens) + 3 * aligned(sizes.rows) + 2 * aligned(sizes.rows + 1);
}

[[noreturn]] void refuse(const char* field, std::int64_t allowed, std::int64_t got) {
  throw ProblemError(field, std::string(field) + " of a step must be at most " + std::to_string(allowed) + ", got " +
                                std::to_string(got));
}

// As unsigned numbers negative ones are the greatest: one comparison a block, of up to a million in a step.
void check_blocks(std::span<const std::int32_t> blocks, const StepSizes& sizes) {
  std::uint32_t most = 0;
  for (const std::int32_t block : blocks) most = std::max(most, static_cast<std::uint32_t>(block));
  if (most >= static_cast<std::uint64_t>(sizes.num_blocks))
    throw ProblemError("table", "blocks must be 0 to " + std::to_string(sizes.num_blocks - 1) + ", got " +
                                    std::to_string(static_cast<std::int32_t>(most)));
}

// The blocks of a row that have a place in the arrays: steps that advance on the device go on to all of them.
std::span<const std::int32_t> usable(std::span<const std::int32_t> table, const StepSizes& sizes) {
  return table.first(std::min(table.size(), static_cast<std::size_t>(sizes.max_blocks)));
}

void check(const StepBatch& batch, const StepSizes& sizes) {
  const std::int64_t rows = std::ssize(batch.rows);
  if (rows == 0) throw ProblemError("rows", "a step must have a row, got none");
  if (rows > sizes.rows) refuse("rows", sizes.rows, rows);
  std::int64_t tokens = 0;
  for (const StepRow& row : batch.rows) {
    const std::int64_t count = std::ssize(row.tokens);
    tokens += count;
    if (count == 0) throw ProblemError("tokens", "a row must have a token, got none");
    for (const TokenId id : row.tokens)
      if (id < 0 || id >= sizes.vocabulary)
        throw ProblemError(
            "tokens", "tokens must be 0 to " + std::to_string(sizes.vocabulary - 1) + ", got " + std::to_string(id));
    const std::int64_t length = row.position + count;
    if (length > sizes.max_blocks * sizes.block_size) refuse("length", sizes.max_blocks * sizes.block_size, length);
    if (std::ssize(row.table) * sizes.block_size < length)
      throw ProblemError("table", "a row's table must cover its " + std::to_string(length) + " tokens, got " +
                                      std::to_string(row.table.size()) + " blocks of " +
                                      std::to_string(sizes.block_size));
    check_blocks(usable(row.table, sizes), sizes);
  }
  for (const BlockCopy& copy : batch.copies) check_blocks(std::array{copy.source, copy.destination}, sizes);
  if (tokens > sizes.tokens) refuse("tokens", sizes.tokens, tokens);
}

// Row `at` of the arrays.
void fill_row(const StepRow& row, std::int64_t batch_row, std::int64_t at, const StepSizes& sizes, std::uint64_t seed,
              const StepArrays& to, StepPlan& plan) {
  const std::int64_t count = std::ssize(row.tokens);
  const std::int64_t length = row.position + count;
  for (std::int64_t i = 0; i < count; ++i) {
    to.ids[plan.tokens + i] = row.tokens[static_cast<std::size_t>(i)];
    to.positions[plan.tokens + i] = static_cast<std::int32_t>(row.position + i);
    to.token_rows[plan.tokens + i] = static_cast<std::int32_t>(at);
  }
  plan.tokens += count;
  to.lengths[at] = static_cast<std::int32_t>(length);
  std::ranges::copy(usable(row.table, sizes), to.table + at * sizes.max_blocks);
  plan.order.push_back(batch_row);
  if (!row.samples) return;
  const std::size_t sample = plan.places.size();
  to.sample_tokens[sample] = static_cast<std::int32_t>(plan.tokens - 1);
  to.sample_places[sample] = static_cast<std::int32_t>(batch_row);
  to.keys[sample] = stream_key(seed, static_cast<std::uint64_t>(row.sequence));
  plan.places.push_back(batch_row);
}

}  // namespace

StepArrays arrays_at(std::byte* base, const StepSizes& sizes) {
  StepArrays arrays;
  arrays.keys = reinterpret_cast<std::uint64_t*>(base);
  auto* next = reinterpret_cast<std::int32_t*>(base) + 2 * aligned(sizes.rows);
  const auto take = [&](std::int64_t words) {
    std::int32_t* const taken = next;
    next += aligned(words);
    return taken;
  };
  arrays.ids = take(sizes.tokens);
  arrays.positions = take(sizes.tokens);
  arrays.token_rows = take(sizes.tokens);
  arrays.lengths = take(sizes.rows);
  arrays.chunk_queries = take(sizes.rows + 1);
  arrays.chunk_keys = take(sizes.rows + 1);
  arrays.sample_tokens = take(sizes.rows);
  arrays.sample_places = take(sizes.rows);
  arrays.table = next;
  return arrays;
}

std::size_t step_bytes(const StepSizes& sizes, std::int64_t table_rows) {
  return static_cast<std::size_t>(words_before_table(sizes) + table_rows * sizes.max_blocks) * sizeof(std::int32_t);
}

StepPlan fill_step(const StepBatch& batch, const StepSizes& sizes, std::uint64_t seed, const StepArrays& to) {
  check(batch, sizes);
  StepPlan plan;
  plan.rows = std::ssize(batch.rows);
  plan.room = sizes.max_blocks * sizes.block_size;
  plan.order.reserve(batch.rows.size());
  plan.places.reserve(batch.rows.size());
  std::int64_t at = 0;
  for (const bool single : {true, false}) {
    for (std::size_t i = 0; i < batch.rows.size(); ++i) {
      const StepRow& row = batch.rows[i];
      if ((row.tokens.size() == 1) != single) continue;
      fill_row(row, static_cast<std::int64_t>(i), at++, sizes, seed, to, plan);
      const std::int64_t length = row.position + std::ssize(row.tokens);
      plan.room = std::min(plan.room, std::ssize(usable(row.table, sizes)) * sizes.block_size - length);
      if (single) {
        ++plan.single_rows;
        plan.longest_single = std::max(plan.longest_single, length);
      } else {
        plan.chunk_q.push_back(std::ssize(row.tokens));
        plan.chunk_kv.push_back(length);
        plan.chunk_block.push_back(row.table.front());
      }
    }
  }
  to.chunk_queries[0] = 0;
  to.chunk_keys[0] = 0;
  for (std::size_t i = 0; i < plan.chunk_q.size(); ++i) {
    to.chunk_queries[i + 1] = to.chunk_queries[i] + static_cast<std::int32_t>(plan.chunk_q[i]);
    to.chunk_keys[i + 1] = to.chunk_keys[i] + static_cast<std::int32_t>(plan.chunk_kv[i]);
  }
  return plan;
}

void pad_rows(const StepPlan& plan, const StepSizes& sizes, std::int64_t rows, const StepArrays& to) {
  for (std::int64_t row = plan.rows; row < rows; ++row) {
    to.ids[row] = -1;
    to.positions[row] = -1;
    to.token_rows[row] = static_cast<std::int32_t>(row);
    to.lengths[row] = 0;
    to.sample_tokens[row] = -1;
    to.sample_places[row] = -1;
    to.keys[row] = 0;
    std::fill_n(to.table + row * sizes.max_blocks, sizes.max_blocks, 0);
  }
}

StepPlan advance_step(const StepPlan& plan, const StepSizes& sizes, const StepArrays& arrays) {
  StepPlan next;
  next.tokens = next.rows = next.single_rows = plan.rows;
  next.room = plan.room - 1;
  const std::vector<std::int32_t> lengths(arrays.lengths, arrays.lengths + plan.rows);
  const std::vector<std::int32_t> table(arrays.table, arrays.table + plan.rows * sizes.max_blocks);
  const std::vector<std::uint64_t> keys(arrays.keys, arrays.keys + plan.rows);
  for (std::int64_t at = 0; at < plan.rows; ++at) {  // the arrays' order was the one of single rows and chunks
    const std::int64_t row = plan.order[static_cast<std::size_t>(at)];
    const std::int32_t length = lengths[static_cast<std::size_t>(at)] + 1;
    arrays.keys[row] = keys[static_cast<std::size_t>(at)];
    arrays.ids[row] = -1;
    arrays.positions[row] = length - 1;
    arrays.token_rows[row] = static_cast<std::int32_t>(row);
    arrays.lengths[row] = length;
    arrays.sample_tokens[row] = static_cast<std::int32_t>(row);
    arrays.sample_places[row] = static_cast<std::int32_t>(row);
    std::copy_n(table.begin() + at * sizes.max_blocks, sizes.max_blocks, arrays.table + row * sizes.max_blocks);
    next.longest_single = std::max<std::int64_t>(next.longest_single, length);
  }
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    next.order.push_back(row);
    next.places.push_back(row);
  }
  return next;
}

std::int64_t row_bucket(std::int64_t rows) {
  if (rows <= 16) return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(rows)));
  const std::int64_t step = rows <= 64 ? 16 : 32;
  return (rows + step - 1) / step * step;
}

std::int64_t length_bucket(std::int64_t length) {
  constexpr std::int64_t kLeast = 256;
  if (length <= kLeast) return kLeast;
  const auto octave = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(length - 1)));
  const std::int64_t step = std::max(octave, kLeast) / 4;
  return (length + step - 1) / step * step;
}

}  // namespace inferometer::decoder
