// The problem of kv_append: what is refused, how its cache is laid out, what it costs.
#include <algorithm>
#include <set>

#include "harness/operator/registry.hpp"
#include "reference/kv_append/cache_slots.hpp"
#include "reference/kv_append/problem.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& append() { return *find_operator("kv_append"); }

KvAppendProblem parsed(const Fields& fields) {
  return *static_cast<const KvAppendProblem*>(append().parse(fields).get());
}

Value number(std::int64_t value) { return value; }
Value list(std::vector<std::int64_t> values) { return values; }

// The sentence that a problem is refused with; empty when it is accepted.
std::string refusal(const Fields& fields) {
  try {
    append().parse(fields);
  } catch (const ProblemError& error) {
    return error.what();
  }
  return {};
}

TensorSpec tensor(const Fields& fields, const std::string& name) {
  const std::vector<TensorSpec> specs = append().tensors(append().parse(fields).get());
  const auto found = std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& s) { return s.name == name; });
  return found == specs.end() ? TensorSpec{} : *found;
}

// For every element, whether it is unused.
std::vector<bool> unused_elements(const TensorSpec& spec) {
  std::vector<bool> unused(static_cast<std::size_t>(spec.elements()));
  for (const ElementRange& range : spec.unused)
    for (std::int64_t repeat = 0; repeat < range.repeats; ++repeat)
      std::fill(unused.begin() + range.begin + repeat * range.stride,
                unused.begin() + range.end + repeat * range.stride, true);
  return unused;
}

}  // namespace

TEST_CASE("kv_append: impossible problems are refused in a sentence", "[kv_append][reference]") {
  CHECK(refusal({}).empty());
  CHECK(refusal({{"head_dim", number(100)}}) == "head_dim must be a multiple of 8, got 100");
  CHECK(refusal({{"batch", number(2)}, {"contexts", list({1})}}) ==
        "contexts must hold one length for each of the 2 sequences of batch, got 1");
  CHECK(refusal({{"batch", number(2)}, {"contexts", list({1, 9})}, {"context", number(5)}}) ==
        "context must be the maximum of contexts, 9, got 5");
  CHECK(refusal({{"context", number(2147483647)}, {"new_tokens", number(1)}}) ==
        "context and new_tokens together must be at most 2147483647, for lengths are 32-bit, got 2147483648");
  CHECK(refusal({{"batch", number(1 << 20)}, {"context", number(4096)}, {"block_size", number(1)}}) ==
        "the cache must fit 2147483647 blocks, whose numbers are 32-bit, got 4296015875");
  for (const Fields& fields :
       {Fields{{"kv_bits", number(5)}}, Fields{{"kv_bits", number(8)}, {"kv_group_size", number(48)}},
        Fields{{"kv_bits", number(8)}, {"head_dim", number(80)}, {"kv_group_size", number(32)}},
        Fields{{"kv_bits", number(8)}, {"kv_format", std::string("fp8")}}, Fields{{"new_tokens", number(0)}},
        Fields{{"block_size", number(513)}}})
    CHECK_FALSE(refusal(fields).empty());
}

TEST_CASE("kv_append: contexts set context, and zeros alone are allowed", "[kv_append][reference]") {
  const KvAppendProblem p = parsed({{"batch", number(3)}, {"contexts", list({4, 0, 9})}, {"new_tokens", number(2)}});
  CHECK(p.context == 9);
  CHECK(p.capacity() == 11);
  CHECK(parsed({{"batch", number(2)}, {"contexts", list({0, 0})}}).capacity() == 1);
}

TEST_CASE("kv_append: shapes of the cache are those of layout.hpp", "[kv_append][reference]") {
  const Fields contiguous = {{"batch", number(3)},
                             {"context", number(10)},
                             {"new_tokens", number(2)},
                             {"kv_heads", number(5)},
                             {"head_dim", number(72)}};
  const auto with = [](Fields fields, const Fields& more) {
    fields.insert(fields.end(), more.begin(), more.end());
    return fields;
  };
  using Shape = std::vector<std::int64_t>;
  CHECK(tensor(contiguous, "k_new").shape == Shape{3, 2, 5, 72});
  CHECK(tensor(contiguous, "k").shape == Shape{3, 12, 5, 72});
  CHECK(tensor(contiguous, "kv_scales").name.empty());
  CHECK(tensor(contiguous, "block_table").name.empty());
  const Fields int4 = with(contiguous, {{"kv_bits", number(4)}});
  CHECK(tensor(int4, "v").shape == Shape{3, 5, 12, 48});
  CHECK(tensor(int4, "kv_scales").shape == Shape{3, 5, 12, 1, 2});
  const Fields paged = with(contiguous, {{"block_size", number(4)}, {"kv_bits", number(8)}});
  // 12 tokens fill 3 blocks, of 3 sequences; 3 blocks are free.
  CHECK(tensor(paged, "k").shape == Shape{12, 5, 4, 80});
  CHECK(tensor(paged, "block_table").shape == Shape{3, 3});
  CHECK(tensor(with(contiguous, {{"block_size", number(4)}}), "k").shape == Shape{12, 4, 5, 72});
}

TEST_CASE("kv_append: the block table covers old and new tokens with blocks of their own", "[kv_append][reference]") {
  const KvAppendProblem p = parsed({{"batch", number(4)},
                                    {"contexts", list({0, 15, 16, 17})},
                                    {"new_tokens", number(16)},
                                    {"block_size", number(16)}});
  const std::vector<std::int32_t> table = append_block_table(p);
  REQUIRE(std::ssize(table) == 4 * 3);
  std::set<std::int32_t> seen;
  const std::int64_t blocks[] = {1, 2, 2, 3};
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (static_cast<std::int64_t>(i % 3) >= blocks[i / 3]) {
      CHECK(table[i] == -1);
      continue;
    }
    CHECK(table[i] >= 0);
    CHECK(table[i] < cache_areas(p));
    CHECK(seen.insert(table[i]).second);
  }
}

TEST_CASE("kv_append: exactly the new tokens' codes, without the padding, are to be written",
          "[kv_append][reference]") {
  for (const std::int64_t block_size : {0, 1, 4}) {
    const Fields fields = {{"batch", number(3)},
                           {"contexts", list({6, 0, 3})},
                           {"new_tokens", number(5)},
                           {"kv_heads", number(2)},
                           {"head_dim", number(24)},
                           {"kv_bits", number(8)},
                           {"block_size", number(block_size)}};
    CAPTURE(block_size);
    for (const auto& [name, row, written] : {std::tuple{"k", 32, 24}, {"v", 32, 24}, {"kv_scales", 2, 2}}) {
      const TensorSpec spec = tensor(fields, name);
      const std::vector<bool> unused = unused_elements(spec);
      CHECK(std::count(unused.begin(), unused.end(), false) == 3 * 5 * 2 * written);
      // New token 1 of sequence 2 is token 4 of it. Head 1.
      const KvAppendProblem p = parsed(fields);
      std::int64_t row_at = (2 * 2 + 1) * 11 + 4;
      if (block_size != 0) {
        const auto entry = static_cast<std::size_t>(2 * p.max_blocks() + 4 / block_size);
        row_at = (append_block_table(p)[entry] * std::int64_t{2} + 1) * block_size + 4 % block_size;
      }
      for (int i = 0; i < row; ++i) CHECK(unused[static_cast<std::size_t>(row_at * row + i)] == (i >= written));
    }
  }
}

TEST_CASE("kv_append: every poison is a byte that its format never writes", "[kv_append][reference]") {
  CHECK(tensor({{"kv_bits", number(8)}}, "k").poison == 0x80);
  CHECK(tensor({{"kv_bits", number(8)}, {"kv_format", std::string("fp8_e4m3")}}, "v").poison == 0xff);
  CHECK(tensor({{"kv_bits", number(4)}}, "k").poison == 0x88);
  CHECK(tensor({}, "k").poison == 0xff);
}

TEST_CASE("kv_append: bytes are what is read and what is written", "[kv_append][reference]") {
  const auto bytes = [](const Fields& more) {
    Fields fields = {{"batch", number(2)}, {"new_tokens", number(3)}, {"kv_heads", number(8)}};
    fields.insert(fields.end(), more.begin(), more.end());
    return append().work(append().parse(fields).get()).bytes;
  };
  const double rows = 2 * 2 * 3 * 8;  // of K and V
  CHECK(bytes({}) == rows * (256 + 256));
  CHECK(bytes({{"kv_bits", number(8)}}) == rows * (256 + 128 + 2));
  CHECK(bytes({{"kv_bits", number(4)}, {"kv_group_size", number(32)}}) == rows * (256 + 64 + 8));
  CHECK(bytes({{"kv_bits", number(8)}, {"head_dim", number(72)}}) == rows * (144 + 72 + 2));
}
