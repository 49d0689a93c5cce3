// A batch as arrays: what goes where, what is padded, and what the next step begins with.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/decoder/step_inputs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

using decoder::StepArrays;
using decoder::StepPlan;
using decoder::StepSizes;

constexpr StepSizes kSizes{
    .tokens = 16, .rows = 4, .max_blocks = 3, .block_size = 4, .num_blocks = 10, .vocabulary = 100};

class Arrays {
 public:
  explicit Arrays(const StepSizes& sizes)
      : memory_(decoder::step_bytes(sizes, sizes.rows) / 16 + 1), arrays_(decoder::arrays_at(base(), sizes)) {}
  const StepArrays& get() const { return arrays_; }
  std::byte* base() { return reinterpret_cast<std::byte*>(memory_.data()); }

 private:
  struct alignas(16) Line {
    std::byte bytes[16];
  };
  std::vector<Line> memory_;
  StepArrays arrays_;
};

std::vector<std::int32_t> first(const std::int32_t* from, std::int64_t count) { return {from, from + count}; }
using Integers = std::vector<std::int32_t>;

const Integers kChunk{10, 11, 12, 13, 14};
const Integers kSingle{20};
const Integers kOther{30};
const Integers kTableA{7, 2};
const Integers kTableB{5};
const Integers kTableC{9, 1, 4};

StepBatch mixed_batch() {
  StepBatch batch;
  batch.rows = {{.sequence = 1, .tokens = kChunk, .position = 2, .table = kTableA, .samples = true},
                {.sequence = 2, .tokens = kSingle, .position = 3, .table = kTableB, .samples = true},
                {.sequence = 3, .tokens = kOther, .position = 8, .table = kTableC, .samples = false}};
  return batch;
}

TEST_CASE("decoder: single tokens stand before chunks, and rows keep their tables and places", "[decoder]") {
  Arrays arrays(kSizes);
  const StepArrays& a = arrays.get();
  const StepPlan plan = decoder::fill_step(mixed_batch(), kSizes, 1, a);
  CHECK(plan.tokens == 7);
  CHECK(plan.rows == 3);
  CHECK(plan.single_rows == 2);
  CHECK(plan.longest_single == 9);
  CHECK(plan.chunk_q == std::vector<std::int64_t>{5});
  CHECK(plan.chunk_kv == std::vector<std::int64_t>{7});
  CHECK(plan.chunk_block == std::vector<std::int64_t>{7});
  CHECK(plan.order == std::vector<std::int64_t>{1, 2, 0});
  CHECK(plan.places == std::vector<std::int64_t>{1, 0});
  CHECK_FALSE(plan.all_single());
  CHECK_FALSE(plan.all_sample());
  CHECK(first(a.ids, 7) == Integers{20, 30, 10, 11, 12, 13, 14});
  CHECK(first(a.positions, 7) == Integers{3, 8, 2, 3, 4, 5, 6});
  CHECK(first(a.token_rows, 7) == Integers{0, 1, 2, 2, 2, 2, 2});
  CHECK(first(a.lengths, 3) == Integers{4, 9, 7});
  CHECK(first(a.chunk_queries, 2) == Integers{0, 5});
  CHECK(first(a.chunk_keys, 2) == Integers{0, 7});
  CHECK(first(a.sample_tokens, 2) == Integers{0, 6});
  CHECK(first(a.sample_places, 2) == Integers{1, 0});
  CHECK(a.table[0] == 5);
  CHECK(first(a.table + 3, 3) == kTableC);
  CHECK(first(a.table + 6, 2) == kTableA);
}

TEST_CASE("decoder: padding has no token, no place and no keys", "[decoder]") {
  Arrays arrays(kSizes);
  const StepArrays& a = arrays.get();
  StepBatch batch;
  batch.rows = {{.sequence = 2, .tokens = kSingle, .position = 3, .table = kTableB, .samples = true}};
  const StepPlan plan = decoder::fill_step(batch, kSizes, 1, a);
  decoder::pad_rows(plan, kSizes, 4, a);
  CHECK(first(a.ids, 4) == Integers{20, -1, -1, -1});
  CHECK(first(a.positions, 4) == Integers{3, -1, -1, -1});
  CHECK(first(a.lengths, 4) == Integers{4, 0, 0, 0});
  CHECK(first(a.sample_tokens, 4) == Integers{0, -1, -1, -1});
  CHECK(first(a.sample_places, 4) == Integers{0, -1, -1, -1});
}

TEST_CASE("decoder: the next step has every row decode behind its last token, in the batch's order", "[decoder]") {
  Arrays arrays(kSizes);
  const StepArrays& a = arrays.get();
  StepBatch batch = mixed_batch();
  batch.rows[2].samples = true;
  const StepPlan plan = decoder::fill_step(batch, kSizes, 1, a);
  const std::vector<std::uint64_t> keys(a.keys, a.keys + 3);  // in the arrays' order
  const StepPlan next = decoder::advance_step(plan, kSizes, a);
  CHECK(next.all_single());
  CHECK(next.all_sample());
  CHECK(next.longest_single == 10);
  CHECK(first(a.positions, 3) == Integers{7, 4, 9});
  CHECK(first(a.lengths, 3) == Integers{8, 5, 10});
  CHECK(first(a.table, 2) == kTableA);
  CHECK(a.table[3] == 5);
  CHECK(first(a.table + 6, 3) == kTableC);
  CHECK(std::vector(a.keys, a.keys + 3) == std::vector{keys[2], keys[0], keys[1]});
}

TEST_CASE("decoder: sequences may go on as far as the shortest rest of a table", "[decoder]") {
  Arrays arrays(kSizes);
  StepBatch batch = mixed_batch();
  CHECK(decoder::fill_step(batch, kSizes, 1, arrays.get()).room == 0);  // 4 tokens in a block of 4
  batch.rows.erase(batch.rows.begin() + 1);
  const StepPlan plan = decoder::fill_step(batch, kSizes, 1, arrays.get());
  CHECK(plan.room == 1);  // 7 tokens in two blocks, 9 in three
  CHECK(decoder::advance_step(plan, kSizes, arrays.get()).room == 0);
  const Integers longer{0, 1, 2, 3};  // three have a place in the arrays
  batch.rows = {{.sequence = 1, .tokens = kSingle, .position = 9, .table = longer, .samples = true}};
  CHECK(decoder::fill_step(batch, kSizes, 1, arrays.get()).room == 2);
}

TEST_CASE("decoder: a step that does not fit is refused, naming what does not", "[decoder]") {
  Arrays arrays(kSizes);
  const auto refused = [&](const StepBatch& batch) { decoder::fill_step(batch, kSizes, 1, arrays.get()); };
  StepBatch batch;
  CHECK_THROWS_WITH(refused(batch), "a step must have a row, got none");
  batch = mixed_batch();
  batch.rows[0].position = 8;
  CHECK_THROWS_WITH(refused(batch), "length of a step must be at most 12, got 13");
  batch = mixed_batch();
  batch.rows[1].position = 4;
  CHECK_THROWS_WITH(refused(batch), "a row's table must cover its 5 tokens, got 1 blocks of 4");
  batch = mixed_batch();
  batch.rows.resize(5, batch.rows[1]);
  CHECK_THROWS_WITH(refused(batch), "rows of a step must be at most 4, got 5");
  batch = mixed_batch();
  batch.rows.resize(4, batch.rows[0]);
  batch.rows[1] = batch.rows[2] = batch.rows[0];
  CHECK_THROWS_WITH(refused(batch), "tokens of a step must be at most 16, got 20");
  batch = mixed_batch();
  const Integers outside{100};
  batch.rows[1].tokens = outside;
  CHECK_THROWS_WITH(refused(batch), "tokens must be 0 to 99, got 100");
  batch.rows[1].tokens = {};
  CHECK_THROWS_WITH(refused(batch), "a row must have a token, got none");
  for (const std::int32_t block : {10, -1}) {
    const std::string sentence = "blocks must be 0 to 9, got " + std::to_string(block);
    batch = mixed_batch();
    const Integers table{7, block};
    batch.rows[0].table = table;
    CHECK_THROWS_WITH(refused(batch), sentence);
    batch.rows[0].table = kTableA;
    const std::vector<BlockCopy> copies{{.source = 3, .destination = block}};
    batch.copies = copies;
    CHECK_THROWS_WITH(refused(batch), sentence);
  }
}

TEST_CASE("decoder: buckets hold what they are for, and are less than twice too large", "[decoder]") {
  for (std::int64_t n = 1; n <= 1024; ++n) {
    CHECK(decoder::row_bucket(n) >= n);
    CHECK(decoder::row_bucket(n) < 2 * n);
    CHECK(decoder::row_bucket(decoder::row_bucket(n)) == decoder::row_bucket(n));
  }
  CHECK(decoder::length_bucket(1) == 256);
  for (std::int64_t n = 257; n <= 10000; n += 13) {
    CHECK(decoder::length_bucket(n) >= n);
    CHECK(decoder::length_bucket(n) <= n + n / 4);
    CHECK(decoder::length_bucket(decoder::length_bucket(n)) == decoder::length_bucket(n));
  }
}

}  // namespace
}  // namespace inferometer::test
