// The problem of attention_decode: what is refused, how its cache is laid out, what it costs.
#include <algorithm>
#include <set>

#include "harness/operator/registry.hpp"
#include "reference/attention_decode/cache_layout.hpp"
#include "reference/attention_decode/problem.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& decode() { return *find_operator("attention_decode"); }

AttentionDecodeProblem parsed(const Fields& fields) {
  return *static_cast<const AttentionDecodeProblem*>(decode().parse(fields).get());
}

std::vector<std::int64_t> list(std::initializer_list<std::int64_t> values) { return values; }

// The field that a problem is refused for; empty when it is accepted.
std::string refused_field(const Fields& fields) {
  try {
    decode().parse(fields);
  } catch (const ProblemError& error) {
    return error.field();
  }
  return {};
}

const std::int64_t kBig = std::int64_t{1} << 31;

}  // namespace

TEST_CASE("attention_decode: context follows from contexts", "[attention_decode][reference]") {
  const auto problem = parsed({{"batch", std::int64_t{3}}, {"contexts", list({7, 0, 300})}});
  CHECK(problem.context == 300);
  CHECK(problem.context_of(1) == 0);
  CHECK(parsed({{"batch", std::int64_t{2}}, {"contexts", list({5, 9})}, {"context", std::int64_t{9}}}).context == 9);
}

TEST_CASE("attention_decode: impossible problems are refused by the field at fault", "[attention_decode][reference]") {
  const Value one = std::int64_t{1};
  CHECK(refused_field({}) == "context");
  CHECK(refused_field({{"context", std::int64_t{0}}}) == "context");
  CHECK(refused_field({{"contexts", list({0})}}) == "context");
  CHECK(refused_field({{"contexts", list({5, 9})}}) == "contexts");  // batch 1
  CHECK(refused_field({{"contexts", list({-1})}}) == "contexts");
  CHECK(refused_field({{"contexts", list({5})}, {"context", std::int64_t{6}}}) == "context");
  CHECK(refused_field({{"context", kBig}}) == "context");
  CHECK(refused_field({{"context", one}, {"q_heads", std::int64_t{6}}, {"kv_heads", std::int64_t{4}}}) == "q_heads");
  CHECK(refused_field({{"context", one}, {"head_dim", std::int64_t{100}}}) == "head_dim");
  CHECK(refused_field({{"context", one}, {"head_dim", std::int64_t{264}}}) == "head_dim");
  CHECK(refused_field({{"context", one}, {"q_len", std::int64_t{0}}}) == "q_len");
  CHECK(refused_field({{"context", one}, {"q_len", std::int64_t{9}}}) == "q_len");
  CHECK(refused_field({{"context", one}, {"block_size", std::int64_t{513}}}) == "block_size");
  CHECK(refused_field({{"context", one}, {"block_size", std::int64_t{-1}}}) == "block_size");
  CHECK(refused_field({{"context", one}, {"kv_bits", std::int64_t{5}}}) == "kv_bits");
  CHECK(refused_field({{"context", one}, {"dtype", std::string("i32")}}) == "dtype");
  CHECK(refused_field({{"context", one}, {"batch", std::int64_t{0}}}) == "batch");
}

TEST_CASE("attention_decode: formats, strides and caps that cannot be are refused by the field at fault",
          "[attention_decode][reference]") {
  const auto n = [](std::int64_t value) { return Value(value); };
  const auto refused = [&](Fields fields) {
    fields.emplace_back("context", n(8));
    return refused_field(fields);
  };
  CHECK(refused({{"kv_bits", n(4)}, {"kv_format", std::string("fp8_e4m3")}}) == "kv_format");
  CHECK(refused({{"kv_bits", n(8)}, {"kv_format", std::string("fp8")}}) == "kv_format");
  CHECK(refused({{"kv_bits", n(8)}, {"kv_group_size", n(48)}}) == "kv_group_size");
  CHECK(refused({{"kv_bits", n(8)}, {"head_dim", n(80)}, {"kv_group_size", n(32)}}) == "kv_group_size");
  CHECK(refused({{"k_row_stride", n(120)}}) == "k_row_stride");  // below one head of 128
  CHECK(refused({{"v_row_stride", n(132)}}) == "v_row_stride");  // no multiple of 8
  CHECK(refused({{"v_row_stride", n(136)}}).empty());
  CHECK(refused({{"kv_bits", n(8)}, {"k_row_stride", n(136)}}) == "k_row_stride");
  CHECK(refused({{"k_row_stride", n(1)}, {"batch", n(0)}}) == "batch");
  CHECK(refused({{"k_row_stride", Value(std::int64_t{1} << 40)}, {"batch", n(1 << 20)}}) == "k_row_stride");
  CHECK(refused({{"window_left", n(-2)}}) == "window_left");
  CHECK(refused({{"soft_cap", -1.0}}) == "soft_cap");
  CHECK(refused({{"soft_cap", 1e-4}}) == "soft_cap");
  CHECK(refused({{"soft_cap", n(50)}}).empty());
  CHECK_THROWS_WITH(
      decode().parse({{"context", n(8)}, {"v_row_stride", n(132)}}),
      "v_row_stride must be 0 or a multiple of 8 from kv_heads times the elements of a head, 128, on, got 132");
}

TEST_CASE("attention_decode: sizes whose products overflow are refused", "[attention_decode][reference]") {
  const Value many = std::int64_t{1} << 40;
  CHECK(refused_field({{"context", kBig - 1}, {"q_heads", many}, {"kv_heads", many}}) == "context");
  CHECK(refused_field({{"context", std::int64_t{1}}, {"q_heads", many}, {"batch", std::int64_t{1} << 20}}) ==
        "q_heads");
  // 2^20 sequences of 2^31 - 1 tokens fit 63 bits, but not 32-bit block numbers.
  CHECK(refused_field({{"context", kBig - 1},
                       {"batch", std::int64_t{1} << 20},
                       {"head_dim", std::int64_t{8}},
                       {"block_size", std::int64_t{16}}}) == "block_size");
}

TEST_CASE("attention_decode: every used slot has one place, and all others are unused",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {1, 4, 16, 512}) {
    CAPTURE(block_size);
    const auto problem = parsed({{"batch", std::int64_t{5}},
                                 {"contexts", list({13, 0, 16, 1, 47})},
                                 {"kv_heads", std::int64_t{2}},
                                 {"q_heads", std::int64_t{2}},
                                 {"head_dim", std::int64_t{8}},
                                 {"block_size", block_size}});
    const std::vector<std::int32_t> table = block_table(problem);
    REQUIRE(std::ssize(table) == problem.batch * problem.max_blocks());

    const std::int64_t token = problem.kv_heads * problem.head_dim;
    const std::int64_t slots = pool_blocks(problem) * block_size;
    std::vector<int> uses(static_cast<std::size_t>(slots));
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t t = 0; t < problem.context_of(b); ++t) {
        const std::int32_t block = table[static_cast<std::size_t>(b * problem.max_blocks() + t / block_size)];
        REQUIRE(block >= 0);
        REQUIRE(block < pool_blocks(problem));
        ++uses[static_cast<std::size_t>(block * block_size + t % block_size)];
      }
      const std::int64_t filled = (problem.context_of(b) + block_size - 1) / block_size;
      for (std::int64_t column = filled; column < problem.max_blocks(); ++column)
        CHECK(table[static_cast<std::size_t>(b * problem.max_blocks() + column)] == -1);
    }
    for (const ElementRange& range : unused_tokens(problem, token)) {
      REQUIRE(range.begin % token == 0);
      REQUIRE(range.end % token == 0);
      for (std::int64_t slot = range.begin / token; slot < range.end / token; ++slot)
        ++uses[static_cast<std::size_t>(slot)];
    }
    CHECK(std::all_of(uses.begin(), uses.end(), [](int n) { return n == 1; }));
    CHECK(pool_blocks(problem) > used_blocks(problem));
  }
}

TEST_CASE("attention_decode: of codes and scales, every used row has one place, and all else is unused",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 4, 16}) {
    CAPTURE(block_size);
    const Fields fields = {{"batch", std::int64_t{3}},   {"contexts", list({13, 0, 16})}, {"kv_heads", std::int64_t{2}},
                           {"q_heads", std::int64_t{2}}, {"head_dim", std::int64_t{80}},  {"kv_bits", std::int64_t{4}},
                           {"block_size", block_size}};
    const auto parsed_problem = decode().parse(fields);
    const auto& problem = *static_cast<const AttentionDecodeProblem*>(parsed_problem.get());
    const std::int64_t pages = block_size == 0 ? 3 : pool_blocks(problem);
    const std::int64_t slots = block_size == 0 ? 16 : block_size;
    const std::vector<TensorSpec> specs = decode().tensors(parsed_problem.get());
    const TensorSpec& k = specs[1];
    const TensorSpec& v = specs[2];
    const TensorSpec& scales = specs[3];
    CHECK(k.dtype == Dtype::u8);
    CHECK(k.shape == std::vector<std::int64_t>{pages, 2, slots, 48});  // 40 bytes of codes
    CHECK(v.shape == k.shape);
    CHECK(scales.name == "kv_scales");
    CHECK(scales.dtype == Dtype::f16);
    CHECK(scales.shape == std::vector<std::int64_t>{pages, 2, slots, 1, 2});

    std::vector<char> holds(static_cast<std::size_t>(pages * 2 * slots));
    for (std::int64_t b = 0; b < 3; ++b)
      for (std::int64_t t = 0; t < problem.context_of(b); ++t)
        for (std::int64_t h = 0; h < 2; ++h) {
          const std::int64_t page =
              block_size == 0
                  ? b
                  : block_table(problem)[static_cast<std::size_t>(b * problem.max_blocks() + t / block_size)];
          holds[static_cast<std::size_t>((page * 2 + h) * slots + t % slots)] = 1;
        }
    for (const TensorSpec& spec : {k, v, scales}) {
      std::vector<char> unused(static_cast<std::size_t>(spec.elements()));
      for (const ElementRange& range : spec.unused)
        for_each_part(range, 0, spec.elements(), [&](std::int64_t begin, std::int64_t end) {
          std::fill(unused.begin() + begin, unused.begin() + end, char{1});
        });
      const std::size_t row = spec.dtype == Dtype::u8 ? 48 : 2;
      const std::size_t used = spec.dtype == Dtype::u8 ? 40 : 2;
      int wrong = 0;
      for (std::size_t i = 0; i < unused.size(); ++i)
        wrong += unused[i] == (holds[i / row] == 0 || i % row >= used ? 1 : 0) ? 0 : 1;
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("attention_decode: padding is one range, however many rows it follows", "[attention_decode][reference]") {
  const auto problem = decode().parse({{"context", std::int64_t{100'000}},
                                       {"block_size", std::int64_t{1}},
                                       {"k_row_stride", std::int64_t{136}},
                                       {"v_row_stride", std::int64_t{256}}});
  const std::vector<TensorSpec> specs = decode().tensors(problem.get());
  CHECK(specs[1].shape == std::vector<std::int64_t>{100'003, 1, 136});
  CHECK(specs[2].shape == std::vector<std::int64_t>{100'003, 1, 256});
  for (const std::size_t tensor : {1, 2}) {
    REQUIRE(specs[tensor].unused.size() == 4);  // three free blocks, and the padding
    const ElementRange& padding = specs[tensor].unused.back();
    CHECK(padding.begin == 128);
    CHECK(padding.end == specs[tensor].shape.back());
    CHECK(padding.repeats == 100'003);
    CHECK(padding.stride == specs[tensor].shape.back());
  }
}

TEST_CASE("attention_decode: blocks stand in random order, the same for the same problem",
          "[attention_decode][reference]") {
  const auto problem = parsed({{"context", std::int64_t{16000}}, {"block_size", std::int64_t{16}}});
  const std::vector<std::int32_t> table = block_table(problem);
  CHECK(table == block_table(problem));
  CHECK(std::set<std::int32_t>(table.begin(), table.end()).size() == 1000);
  int ascending = 0;
  for (std::size_t i = 1; i < table.size(); ++i) ascending += table[i] == table[i - 1] + 1 ? 1 : 0;
  CHECK(ascending < 20);  // in random order about one in a thousand
}

TEST_CASE("attention_decode: unused slots of a contiguous cache are those past each length",
          "[attention_decode][reference]") {
  const auto problem =
      parsed({{"batch", std::int64_t{3}}, {"contexts", list({2, 4, 0})}, {"head_dim", std::int64_t{8}}});
  const std::vector<ElementRange> unused = unused_tokens(problem, 8);
  REQUIRE(unused.size() == 2);
  CHECK(unused[0].begin == 2 * 8);
  CHECK(unused[0].end == 4 * 8);
  CHECK(unused[1].begin == 8 * 8);
  CHECK(unused[1].end == 12 * 8);
}

TEST_CASE("attention_decode: work counts visible pairs, and every key and value once",
          "[attention_decode][reference]") {
  const auto work = [](const Fields& fields) { return decode().work(decode().parse(fields).get()); };
  // Llama-3-8B, 32 sequences of 8192: 1.07 GB of keys and values.
  const Work llama = work({{"batch", std::int64_t{32}},
                           {"context", std::int64_t{8192}},
                           {"q_heads", std::int64_t{32}},
                           {"kv_heads", std::int64_t{8}},
                           {"block_size", std::int64_t{16}}});
  CHECK(llama.flops == 4.0 * 32 * 8192 * 32 * 128);
  CHECK(llama.bytes == 32.0 * 8192 * 8 * 2 * 128 * 2 + 32.0 * 32 * (2 * 128 * 2 + 4));
  CHECK(llama.arithmetic == Arithmetic::f16_matmul);
  // Lengths 5, 0 and 1 with 3 queries: 3 + 4 + 5, none, and 1 pairs.
  const Work ragged = work({{"batch", std::int64_t{3}},
                            {"contexts", list({5, 0, 1})},
                            {"q_len", std::int64_t{3}},
                            {"head_dim", std::int64_t{8}},
                            {"dtype", std::string("f32")}});
  CHECK(ragged.flops == 4.0 * 8 * 13);
  CHECK(ragged.bytes == 6.0 * 2 * 8 * 4 + 9.0 * (2 * 8 * 4 + 4));
  CHECK(ragged.arithmetic == Arithmetic::f32);
}

TEST_CASE("attention_decode: work counts codes and scales, and of a window what it shows",
          "[attention_decode][reference]") {
  const auto work = [](const Fields& fields) { return decode().work(decode().parse(fields).get()); };
  const auto n = [](std::int64_t value) { return Value(value); };
  const double outer = 8.0 * (2 * 128 * 2 + 4);  // Q, O and the log-sum-exp of 8 heads
  const auto keys = [&](Fields fields) {
    fields.emplace_back("context", n(1000));
    fields.emplace_back("q_heads", n(8));
    return work(fields).bytes - outer;
  };
  CHECK(keys({{"kv_bits", n(8)}}) == 1000.0 * 2 * (128 + 2));
  CHECK(keys({{"kv_bits", n(8)}, {"kv_group_size", n(32)}}) == 1000.0 * 2 * (128 + 8));
  CHECK(keys({{"kv_bits", n(4)}, {"kv_group_size", n(64)}}) == 1000.0 * 2 * (64 + 4));
  CHECK(keys({{"v_row_stride", n(256)}}) == 1000.0 * 2 * 256);  // padding is not useful
  CHECK(keys({{"window_left", n(99)}}) == 100.0 * 2 * 256);
  // Queries at 17, 18 and 19 see 5 keys each, 13 to 19 in all; with 2 tokens the first query sees none.
  const Work window = work({{"context", n(20)}, {"q_len", n(3)}, {"window_left", n(4)}});
  CHECK(window.flops == 4.0 * 128 * 15);
  CHECK(window.bytes == 7.0 * 2 * 256 + 3.0 * (2 * 128 * 2 + 4));
  CHECK(work({{"context", n(2)}, {"q_len", n(3)}, {"window_left", n(4)}}).flops == 4.0 * 128 * 3);
}

TEST_CASE("attention_decode: tensors are bound in order, with and without a block table",
          "[attention_decode][reference]") {
  for (const auto& [block_size, kv_bits] : {std::pair{0, 16}, {16, 16}, {0, 8}, {16, 4}}) {
    const auto problem = decode().parse(
        {{"context", std::int64_t{40}}, {"block_size", std::int64_t{block_size}}, {"kv_bits", std::int64_t{kv_bits}}});
    std::vector<TensorSpec> specs = decode().tensors(problem.get());
    std::vector<char> memory(specs.size());
    std::vector<void*> pointers;
    for (char& byte : memory) pointers.push_back(&byte);
    const auto bound = decode().bind(problem.get(), pointers);
    const auto& tensors = *static_cast<const AttentionDecodeTensors*>(bound.get());
    const auto at = [&](std::string_view name) -> const void* {
      for (std::size_t i = 0; i < specs.size(); ++i)
        if (specs[i].name == name) return pointers[i];
      return nullptr;
    };
    CHECK(tensors.q == at("q"));
    CHECK(tensors.k == at("k"));
    CHECK(tensors.v == at("v"));
    CHECK(tensors.kv_scales == at("kv_scales"));
    CHECK((tensors.kv_scales == nullptr) == (kv_bits == 16));
    CHECK(tensors.seq_lens == at("seq_lens"));
    CHECK(tensors.block_table == at("block_table"));
    CHECK((tensors.block_table == nullptr) == (block_size == 0));
    CHECK(tensors.o == at("o"));
    CHECK(tensors.lse == at("lse"));
  }
}

TEST_CASE("attention_decode: the shapes of a problem of any size are known without its block table",
          "[attention_decode][reference]") {
  const auto small = decode().parse({{"context", std::int64_t{40}}, {"block_size", std::int64_t{16}}});
  const std::vector<TensorSpec> shapes = decode().shapes(small.get());
  const std::vector<TensorSpec> specs = decode().tensors(small.get());
  REQUIRE(shapes.size() == specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CHECK(shapes[i].name == specs[i].name);
    CHECK(shapes[i].shape == specs[i].shape);
    CHECK(shapes[i].bytes() == specs[i].bytes());
  }
  // Two billion entries: built, they would take 8 GB.
  const auto large = decode().parse(
      {{"context", std::int64_t{2'000'000'000}}, {"head_dim", std::int64_t{8}}, {"block_size", std::int64_t{1}}});
  for (const TensorSpec& spec : decode().shapes(large.get())) {
    CHECK(spec.unused.empty());
    CHECK(std::holds_alternative<Normal>(spec.source));
    if (spec.name == "block_table") CHECK(spec.bytes() == 8'000'000'000);
  }
}
