// The attention_prefill operator: which problems it accepts, what they cost, and that its judge knows the answer.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/attention_prefill/problem.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& attention() { return *find_operator("attention_prefill"); }

std::string refusal(const Fields& fields) {
  try {
    attention().parse(fields);
  } catch (const ProblemError& error) {
    return error.field() + ": " + error.what();
  }
  return "accepted";
}

Fields shape(std::int64_t batch, std::int64_t q_heads, std::int64_t kv_heads, std::int64_t q_len, std::int64_t kv_len,
             std::int64_t head_dim, bool causal) {
  return {{"batch", batch},   {"q_heads", q_heads},   {"kv_heads", kv_heads}, {"q_len", q_len},
          {"kv_len", kv_len}, {"head_dim", head_dim}, {"causal", causal},     {"dtype", std::string("f32")}};
}

std::vector<std::int64_t> list(std::vector<std::int64_t> lengths) { return lengths; }

// The mask by its definition.
bool sees(bool causal, std::int64_t i, std::int64_t j, std::int64_t q_len, std::int64_t kv_len) {
  return !causal || j <= i + kv_len - q_len;
}

}  // namespace

TEST_CASE("attention_prefill: impossible problems are refused by field, with what is allowed",
          "[attention_prefill][operator]") {
  const auto n = [](std::int64_t value) { return Value(value); };
  const auto refuses = [](const Fields& fields, std::initializer_list<std::string_view> words) {
    const std::string sentence = refusal(fields);
    CAPTURE(to_string(fields), sentence);
    for (const std::string_view word : words) CHECK(sentence.find(word) != std::string::npos);
  };
  refuses({{"head_dim", n(100)}}, {"head_dim: head_dim must be a multiple of 8, got 100"});
  refuses({{"head_dim", n(264)}}, {"head_dim: ", "256", "264"});
  refuses({{"q_heads", n(6)}, {"kv_heads", n(4)}}, {"q_heads: ", "multiple of kv_heads, got 6 and 4"});
  refuses({{"q_len", n(0)}}, {"q_len: "});
  refuses({{"kv_len", n(-1)}}, {"kv_len: ", "-1"});
  refuses({{"v_head_dim", n(100)}}, {"v_head_dim: v_head_dim must be a multiple of 8, got 100"});
  refuses({{"block_size", n(513)}}, {"block_size: ", "512", "513"});
  refuses({{"window_left", n(5)}}, {"window_left: window_left must be -1 without causal, got 5"});
  refuses({{"window_left", n(-2)}, {"causal", true}}, {"window_left: ", "-2"});
  refuses({{"soft_cap", 1e-4}}, {"soft_cap: soft_cap must be 0 or at least 0.001, got 1e-04"});
  refuses({{"k_row_stride", n(68)}}, {"k_row_stride: ", "multiple of 8", "64, on, got 68"});
  refuses({{"v_head_dim", n(128)}, {"v_row_stride", n(120)}}, {"v_row_stride: ", "128, on, got 120"});
  refuses({{"batch", n(2)}, {"q_lens", list({3, 4})}}, {"kv_lens: ", "2 sequences", "go together, got 0"});
  refuses({{"batch", n(2)}, {"kv_lens", list({3, 4})}}, {"q_lens: ", "got 0"});
  refuses({{"batch", n(2)}, {"q_lens", list({3})}, {"kv_lens", list({3, 4})}}, {"q_lens: ", "got 1"});
  refuses({{"q_lens", list({-3})}, {"kv_lens", list({3})}}, {"q_lens: ", "-3"});
  refuses({{"q_lens", list({0})}, {"kv_lens", list({3})}}, {"q_lens: ", "a length above 0, got zeros only"});
  refuses({{"q_lens", list({3})}, {"kv_lens", list({3})}, {"kv_len", n(4)}},
          {"kv_len: kv_len must be the maximum of kv_lens, 3, got 4"});
  refuses({{"batch", n(2)}, {"q_lens", list({2147483647, 1})}, {"kv_lens", list({1, 1})}}, {"q_lens: ", "2147483647"});
  refuses({{"dtype", std::string("i32")}}, {"dtype: ", "f16", "bf16", "f32"});
  refuses({{"seq_len", n(8)}, {"q_len", n(8)}}, {"q_len"});
  // Each field is possible, their products are not.
  refuses({{"batch", n(1 << 30)}, {"q_len", n(1 << 30)}}, {"q_len: "});
  refuses({{"q_len", n(std::int64_t{1} << 40)}, {"kv_len", n(std::int64_t{1} << 40)}}, {"kv_len: "});
  // Blocks have 32-bit numbers.
  refuses({{"batch", n(1 << 12)}, {"kv_len", n(1 << 30)}, {"block_size", n(1)}, {"head_dim", n(8)}},
          {"block_size: ", "2147483647 blocks"});
  CHECK(refusal({{"seq_len", n(1 << 20)}, {"q_heads", n(64)}, {"kv_heads", n(8)}}) == "accepted");
  CHECK(refusal({{"kv_len", n(0)}}) == "accepted");
  CHECK(refusal({{"batch", n(2)}, {"q_lens", list({0, 3})}, {"kv_lens", list({0, 0})}, {"block_size", n(16)}}) ==
        "accepted");
}

TEST_CASE("attention_prefill: lists of lengths set their maxima", "[attention_prefill][operator]") {
  const auto parsed =
      attention().parse({{"batch", std::int64_t{3}}, {"q_lens", list({5, 0, 2})}, {"kv_lens", list({7, 9, 0})}});
  const auto& p = *static_cast<const AttentionPrefillProblem*>(parsed.get());
  CHECK(p.q_len == 5);
  CHECK(p.kv_len == 9);
  CHECK(p.total_q() == 7);
  CHECK(p.total_kv() == 16);
  // What describe() gives is a problem again, and the same one.
  CHECK(to_string(attention().describe(attention().parse(attention().describe(&p)).get())) ==
        to_string(attention().describe(&p)));
}

TEST_CASE("attention_prefill: ragged tensors are packed behind prefix sums, paged ones lie in blocks",
          "[attention_prefill][operator]") {
  const auto problem = attention().parse({{"batch", std::int64_t{3}},
                                          {"q_lens", list({5, 0, 2})},
                                          {"kv_lens", list({7, 9, 0})},
                                          {"kv_heads", std::int64_t{2}},
                                          {"q_heads", std::int64_t{4}},
                                          {"v_head_dim", std::int64_t{8}},
                                          {"v_row_stride", std::int64_t{24}},
                                          {"block_size", std::int64_t{4}}});
  const std::vector<TensorSpec> specs = attention().tensors(problem.get());
  using Shape = std::vector<std::int64_t>;
  const std::vector<std::pair<std::string, Shape>> expected = {
      {"q", {7, 4, 64}},   {"k", {8, 4, 2, 64}},    {"v", {8, 4, 24}}, {"cu_q_lens", {4}},
      {"cu_kv_lens", {4}}, {"block_table", {3, 3}}, {"o", {7, 4, 8}},  {"lse", {4, 7}}};
  REQUIRE(specs.size() == expected.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    CHECK(specs[i].name == expected[i].first);
    CHECK(specs[i].shape == expected[i].second);
  }
  const Inputs inputs(specs, 1);
  CHECK(inputs.integers("cu_q_lens") == std::vector<std::int32_t>{0, 5, 5, 7});
  CHECK(inputs.integers("cu_kv_lens") == std::vector<std::int32_t>{0, 7, 16, 16});

  // Every key has one slot, and all elements beside keys and heads are NaN.
  std::set<std::int64_t> rows;
  for (const auto& [sequence, keys] : {std::pair{0, 7}, std::pair{1, 9}})
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int32_t block = inputs.integers("block_table")[static_cast<std::size_t>(sequence * 3 + j / 4)];
      REQUIRE(block >= 0);
      rows.insert(block * 4 + j % 4);
    }
  CHECK(rows.size() == 16);
  for (std::int64_t row = 0; row < 32; ++row) {
    const std::vector<float> k = inputs.read("k", row * 128, 128);
    const std::vector<float> v = inputs.read("v", row * 24, 24);
    for (const float element : k) REQUIRE(std::isnan(element) == !rows.contains(row));
    for (std::size_t e = 0; e < 24; ++e) REQUIRE(std::isnan(v[e]) == (!rows.contains(row) || e >= 16));
  }
  const std::vector<std::int32_t>& table = inputs.integers("block_table");
  CHECK(table[2] == -1);
  for (std::size_t entry = 6; entry < 9; ++entry) CHECK(table[entry] == -1);
}

TEST_CASE("attention_prefill: FLOPs and bytes count what windows and lengths let queries see",
          "[attention_prefill][operator]") {
  for (const std::int64_t window : {-1, 0, 1, 3, 7, 20}) {
    const std::vector<std::pair<std::int64_t, std::int64_t>> lengths = {{5, 7}, {7, 5}, {0, 4}, {4, 0}, {1, 9}, {9, 9}};
    std::int64_t pairs = 0;
    std::int64_t keys = 0;
    std::vector<std::int64_t> q_lens;
    std::vector<std::int64_t> kv_lens;
    for (const auto& [q_len, kv_len] : lengths) {
      q_lens.push_back(q_len);
      kv_lens.push_back(kv_len);
      for (std::int64_t j = 0; j < kv_len; ++j) {
        bool seen = false;
        for (std::int64_t i = 0; i < q_len; ++i) {
          const std::int64_t own = i + kv_len - q_len;
          if (j > own || (window >= 0 && j < own - window)) continue;
          ++pairs;
          seen = true;
        }
        keys += seen ? 1 : 0;
      }
    }
    CAPTURE(window);
    const auto problem = attention().parse({{"batch", std::int64_t{6}},
                                            {"q_heads", std::int64_t{6}},
                                            {"kv_heads", std::int64_t{2}},
                                            {"q_lens", q_lens},
                                            {"kv_lens", kv_lens},
                                            {"head_dim", std::int64_t{24}},
                                            {"v_head_dim", std::int64_t{16}},
                                            {"window_left", window},
                                            {"causal", true}});
    const Work work = attention().work(problem.get());
    CHECK(work.flops == 2.0 * 6 * (24 + 16) * static_cast<double>(pairs));
    const std::int64_t rows = 6 * (5 + 7 + 0 + 4 + 1 + 9);
    constexpr std::int64_t kBytes = 80;  // 24 and 16 elements of f16
    CHECK(work.bytes == static_cast<double>(kBytes * (rows + 2 * keys) + 4 * rows));
  }
}

TEST_CASE("attention_prefill: seq_len sets both lengths", "[attention_prefill][operator]") {
  const auto problem = attention().parse({{"seq_len", Value(std::int64_t{77})}});
  for (const auto& [name, value] : attention().describe(problem.get()))
    if (name == "q_len" || name == "kv_len") CHECK(std::get<std::int64_t>(value) == 77);
}

TEST_CASE("attention_prefill: FLOPs count the visible pairs exactly, bytes each tensor once",
          "[attention_prefill][operator]") {
  for (const bool causal : {false, true}) {
    for (const std::int64_t q_len : {1, 2, 5, 16}) {
      for (const std::int64_t kv_len : {1, 2, 5, 16}) {
        CAPTURE(causal, q_len, kv_len);
        std::int64_t pairs = 0;
        for (std::int64_t i = 0; i < q_len; ++i)
          for (std::int64_t j = 0; j < kv_len; ++j) pairs += sees(causal, i, j, q_len, kv_len) ? 1 : 0;
        const auto problem = attention().parse(shape(3, 6, 2, q_len, kv_len, 16, causal));
        const Work work = attention().work(problem.get());
        CHECK(work.flops == 4.0 * 3 * 6 * 16 * static_cast<double>(pairs));
        const std::int64_t elements = 3 * 16 * (2 * 6 * q_len + 2 * 2 * kv_len) + 3 * 6 * q_len;
        CHECK(work.bytes == 4.0 * static_cast<double>(elements));
      }
    }
  }
}

TEST_CASE("attention_prefill: the judge knows every row of a small problem", "[attention_prefill][operator]") {
  for (const bool causal : {false, true}) {
    for (const auto& [q_len, kv_len] : {std::pair{5, 7}, std::pair{7, 5}, std::pair{1, 9}}) {
      CAPTURE(causal, q_len, kv_len);
      const std::int64_t batch = 2;
      const std::int64_t q_heads = 6;
      const std::int64_t kv_heads = 2;
      const std::int64_t d = 16;
      const auto problem = attention().parse(shape(batch, q_heads, kv_heads, q_len, kv_len, d, causal));
      const Inputs inputs(attention().tensors(problem.get()), 7);
      const auto element = [&](const char* name, std::int64_t length, std::int64_t heads, std::int64_t b,
                               std::int64_t i, std::int64_t h, std::int64_t e) {
        return static_cast<double>(inputs.read(name, ((b * length + i) * heads + h) * d + e, 1)[0]);
      };
      std::set<std::int64_t> rows_of_o;
      std::set<std::int64_t> rows_of_lse;
      for (const ExpectedSpan& span : attention().expect(problem.get(), inputs, 7, 2)) {
        if (span.tensor == "lse") {
          REQUIRE(span.values.size() == 1);
          rows_of_lse.insert(span.begin);
          continue;
        }
        REQUIRE(span.tensor == "o");
        REQUIRE(std::ssize(span.values) == d);
        REQUIRE(span.begin % d == 0);
        rows_of_o.insert(span.begin / d);
        const std::int64_t h = span.begin / d % q_heads;
        const std::int64_t i = span.begin / d / q_heads % q_len;
        const std::int64_t b = span.begin / d / q_heads / q_len;
        // The definition, without the running maximum: scores of 16 standard normal products stay far below 700.
        double sum = 0;
        std::vector<double> o(static_cast<std::size_t>(d), 0.0);
        for (std::int64_t j = 0; j < kv_len; ++j) {
          if (!sees(causal, i, j, q_len, kv_len)) continue;
          double score = 0;
          for (std::int64_t e = 0; e < d; ++e)
            score += element("q", q_len, q_heads, b, i, h, e) * element("k", kv_len, kv_heads, b, j, h / 3, e);
          const double weight = std::exp(score / 4.0);
          sum += weight;
          for (std::int64_t e = 0; e < d; ++e)
            o[static_cast<std::size_t>(e)] += weight * element("v", kv_len, kv_heads, b, j, h / 3, e);
        }
        for (std::size_t e = 0; e < o.size(); ++e) {
          const double expected = sum == 0 ? 0 : o[e] / sum;
          CHECK(std::abs(span.values[e] - expected) <= 1e-13);  // a few dozen roundings of 1e-16
        }
      }
      CHECK(std::ssize(rows_of_o) == batch * q_len * q_heads);
      CHECK(std::ssize(rows_of_lse) == batch * q_len * q_heads);
    }
  }
}

TEST_CASE("attention_prefill: the judge's log-sum-exp is that of the visible scores", "[attention_prefill][operator]") {
  // All scores are 2: ln(n e^2) = 2 + ln n with n visible keys; -infinity without.
  const auto problem = attention().parse(shape(1, 1, 1, 4, 2, 16, true));
  std::vector<TensorSpec> specs = attention().tensors(problem.get());
  specs[0].source = [](std::int64_t) { return 1.0F; };
  specs[1].source = [](std::int64_t) { return 0.5F; };
  for (const ExpectedSpan& span : attention().expect(problem.get(), Inputs(specs, 1), 1, 1)) {
    if (span.tensor != "lse") continue;
    const double expected[] = {-std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 2.0,
                               2.0 + std::log(2.0)};
    if (span.begin < 2) {
      CHECK(span.values[0] == expected[span.begin]);
    } else {
      CHECK(span.values[0] == Approx(expected[span.begin]).epsilon(1e-14));
    }
  }
}

TEST_CASE("attention_prefill: of a large problem the judge takes the corners and a bounded number of rows",
          "[attention_prefill][operator]") {
  constexpr std::int64_t kLength = 4096;
  const auto problem = attention().parse(shape(2, 32, 8, kLength, kLength, 64, true));
  const Inputs inputs(attention().tensors(problem.get()), 1);
  const auto spans = attention().expect(problem.get(), inputs, 1, 2);
  CHECK(spans.size() <= 4096);
  std::set<std::int64_t> heads;
  bool first = false;
  bool last = false;
  for (const ExpectedSpan& span : spans) {
    if (span.tensor != "lse") continue;
    heads.insert(span.begin / kLength);
    first = first || span.begin == 0;
    last = last || span.begin == 2 * 32 * kLength - 1;
  }
  CHECK(first);
  CHECK(last);
  CHECK(heads.size() >= 8);  // two query heads of four (sequence, KV head) pairs
}
