// The matmul operator: which problems it accepts, what they cost, and that its judge knows the answer.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& matmul() { return *find_operator("matmul"); }

Fields shape(std::int64_t m, std::int64_t n, std::int64_t k) { return {{"m", m}, {"n", n}, {"k", k}}; }

}  // namespace

TEST_CASE("matmul: impossible problems are refused by field, with what is allowed", "[matmul][operator]") {
  const auto n = [](std::int64_t value) { return Value(value); };
  const auto refuses = [](const Fields& fields, std::initializer_list<std::string_view> words) {
    std::string sentence = "accepted";
    try {
      matmul().parse(fields);
    } catch (const ProblemError& error) {
      sentence = error.field() + ": " + error.what();
    }
    CAPTURE(to_string(fields), sentence);
    for (const std::string_view word : words) CHECK(sentence.find(word) != std::string::npos);
  };
  const Value no = false;
  refuses({{"bits", n(5)}}, {"bits: bits must be 16, 8 or 4, got 5"});
  refuses({{"bits", n(4)}, {"k", n(63)}}, {"k: k must be even with bits 4", "got 63"});
  refuses({{"bits", n(4)}, {"group_size", n(48)}}, {"group_size: ", "0 (all of k), 32, 64 or 128, got 48"});
  refuses({{"group_size", n(32)}}, {"group_size: group_size must be 0 with bits 16", "got 32"});
  refuses({{"symmetric", no}}, {"symmetric: symmetric must be true with bits 16"});
  refuses({{"bits", n(8)}, {"activation_bits", n(12)}}, {"activation_bits: ", "16 or 8, got 12"});
  refuses({{"bits", n(4)}, {"k", n(64)}, {"activation_bits", n(8)}}, {"activation_bits: ", "16 unless bits is 8"});
  const auto w8a8 = [&](const char* field, const Value& value) {
    return Fields{{"bits", n(8)}, {"activation_bits", n(8)}, {field, value}};
  };
  refuses(w8a8("group_size", n(128)), {"group_size: ", "0 with activation_bits 8", "got 128"});
  refuses(w8a8("symmetric", no), {"symmetric: ", "activation_bits 8"});
  refuses(w8a8("k", n(132105)), {"k: k must be at most 132104", "overflow", "got 132105"});
  refuses({{"m", n(0)}}, {"m: "});
  refuses({{"k", n(-8)}}, {"k: ", "-8"});
  refuses({{"dtype", std::string("f32")}}, {"dtype: ", "f16", "bf16"});
  refuses(shape(std::int64_t{1} << 40, 1, std::int64_t{1} << 40), {"k: "});
  refuses(shape(1, std::int64_t{1} << 40, std::int64_t{1} << 40), {"n: "});
  refuses(shape(std::int64_t{1} << 40, std::int64_t{1} << 40, 1), {"m: "});
}

TEST_CASE("matmul: 2 m n k FLOPs, and each tensor's bytes once", "[matmul][operator]") {
  const auto problem = matmul().parse(shape(3, 5, 7));
  CHECK(matmul().work(problem.get()).flops == 210.0);
  CHECK(matmul().work(problem.get()).bytes == 2.0 * (3 * 7 + 5 * 7 + 3 * 5));
}

TEST_CASE("matmul: the judge knows every element of a small product", "[matmul][operator]") {
  for (const std::int64_t n : {1, 63, 64, 65, 127, 128, 129}) {
    CAPTURE(n);
    constexpr std::int64_t kRows = 5;
    constexpr std::int64_t kDepth = 19;
    const auto problem = matmul().parse(shape(kRows, n, kDepth));
    const Inputs inputs(matmul().tensors(problem.get()), 3);
    const std::vector<float> x = inputs.read("x", 0, kRows * kDepth);
    const std::vector<float> w = inputs.read("w", 0, n * kDepth);
    std::vector<int> seen(static_cast<std::size_t>(kRows * n), 0);
    for (const ExpectedSpan& span : matmul().expect(problem.get(), inputs, 3, 2)) {
      for (std::size_t e = 0; e < span.values.size(); ++e) {
        const std::int64_t element = span.begin + static_cast<std::int64_t>(e);
        ++seen.at(static_cast<std::size_t>(element));
        double sum = 0;
        for (std::int64_t k = 0; k < kDepth; ++k)
          sum += static_cast<double>(x[static_cast<std::size_t>(element / n * kDepth + k)]) *
                 static_cast<double>(w[static_cast<std::size_t>(element % n * kDepth + k)]);
        CHECK(std::abs(span.values[e] - sum) <= 1e-13);  // 19 roundings of sums below 100
      }
    }
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
}

TEST_CASE("matmul: of a large product the judge takes the corners and a bounded number of rows", "[matmul][operator]") {
  constexpr std::int64_t kSize = 4096;
  const auto problem = matmul().parse(shape(kSize, kSize, kSize));
  const auto spans = matmul().expect(problem.get(), Inputs(matmul().tensors(problem.get()), 1), 1, 2);
  std::int64_t elements = 0;
  std::vector<std::int64_t> corners = {0, kSize - 1, (kSize - 1) * kSize, kSize * kSize - 1};
  for (const ExpectedSpan& span : spans) {
    const std::int64_t end = span.begin + std::ssize(span.values);
    elements += std::ssize(span.values);
    std::erase_if(corners, [&](std::int64_t corner) { return span.begin <= corner && corner < end; });
  }
  CHECK(corners.empty());
  CHECK(elements >= 32 * 16 * 64);
  CHECK(elements <= 200000);
}
