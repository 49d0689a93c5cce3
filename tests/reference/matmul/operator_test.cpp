// The matmul operator: which problems it accepts, what they cost, and that its judge knows the answer.
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <map>
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
  const Value yes = true;
  refuses({{"bits", n(8)}, {"w_transposed", yes}},
          {"w_transposed: w_transposed must be false unless bits is 16, got true with bits 8"});
  refuses({{"bits", n(4)}, {"k", n(64)}, {"w_transposed", yes}}, {"w_transposed: ", "got true with bits 4"});
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

TEST_CASE("matmul: quantised weights count with their scales and zero points, int8 products as such",
          "[matmul][operator]") {
  const auto work = [](const Fields& fields) {
    const auto problem = matmul().parse(fields);
    return matmul().work(problem.get());
  };
  Fields fields = shape(3, 5, 256);
  fields.insert(fields.end(), {{"bits", std::int64_t{4}}, {"group_size", std::int64_t{128}}, {"symmetric", false}});
  CHECK(work(fields).bytes == 2.0 * (3 * 256 + 3 * 5) + 5 * 128 + 5 * 2 * 2 + 5);
  CHECK(work(fields).arithmetic == Arithmetic::f16_matmul);
  fields = shape(3, 5, 256);
  fields.insert(fields.end(), {{"bits", std::int64_t{8}}, {"activation_bits", std::int64_t{8}}});
  CHECK(work(fields).bytes == 2.0 * (3 * 256 + 3 * 5) + 5 * 256 + 5 * 2);
  CHECK(work(fields).arithmetic == Arithmetic::int8_matmul);
}

TEST_CASE("matmul: metrics give the bits of a weight with all that belongs to it, and the error of rounding",
          "[matmul][operator]") {
  const auto metrics = [](const Fields& fields) {
    const auto problem = matmul().parse(fields);
    const std::vector<TensorSpec> specs = matmul().tensors(problem.get());
    std::map<std::string, double> values;
    for (const Metric& metric :
         matmul().metrics(problem.get(), Inputs(specs, 1), std::vector<const void*>(specs.size()), 2))
      values[metric.name] = metric.value;
    return values;
  };
  const auto of_format = [&](std::int64_t bits, std::int64_t group_size, bool symmetric) {
    Fields fields = shape(1, 8, 4096);
    fields.insert(fields.end(), {{"bits", bits}, {"group_size", group_size}, {"symmetric", symmetric}});
    return metrics(fields);
  };
  CHECK(of_format(4, 128, true).at("weights_bits_effective") == 4.125);
  CHECK(of_format(4, 128, false).at("weights_bits_effective") == 4.15625);
  CHECK(of_format(8, 128, false).at("weights_bits_effective") == 8.1875);
  CHECK(of_format(4, 128, true).at("weights_bytes") == 8 * 4096 * 4.125 / 8);
  CHECK(of_format(4, 128, true).at("weights_of_f16_ratio") == 4.125 / 16);
  CHECK(of_format(4, 128, true).at("weights_of_f32_ratio") == 4.125 / 32);
  CHECK(of_format(16, 0, true).at("weights_bits_effective") == 16);
  CHECK(of_format(16, 0, true).count("quantization_rel_error") == 0);
  // A step is the greatest of g weights over 7.5 or so, about 3 to 4 standard deviations wide with these tails; the
  // error of rounding is a step over sqrt(12): near 0.1, less in smaller groups, a sixteenth with 8 bits.
  const double error = of_format(4, 128, true).at("quantization_rel_error");
  CHECK(error > 0.05);
  CHECK(error < 0.3);
  CHECK(of_format(4, 32, true).at("quantization_rel_error") < error);
  CHECK(of_format(4, 0, true).at("quantization_rel_error") > error);
  // X is independent of W and of its errors: those of Y are as large, within the chance of 8 outputs.
  CHECK(of_format(4, 128, true).at("output_rel_error") > error / 3);
  CHECK(of_format(4, 128, true).at("output_rel_error") < error * 3);
  const double ratio = of_format(8, 128, true).at("quantization_rel_error") / error;
  CHECK(ratio > 1.0 / 20);
  CHECK(ratio < 1.0 / 13);
  // int8 activations: a step is the greatest of 4096 normal values over 127, about 3.4 / 127 deviations; over sqrt(12)
  // an error of 0.0077, beside that of the weights.
  Fields w8a8 = shape(16, 64, 4096);
  w8a8.insert(w8a8.end(), {{"bits", std::int64_t{8}}, {"activation_bits", std::int64_t{8}}});
  const std::map<std::string, double> errors = metrics(w8a8);
  const double both = std::hypot(errors.at("quantization_rel_error"), 0.0077);
  CHECK(errors.at("output_rel_error") > 0.8 * both);
  CHECK(errors.at("output_rel_error") < 1.25 * both);
}

TEST_CASE("matmul: the judge knows every element of a small product", "[matmul][operator]") {
  constexpr std::int64_t kRows = 5;
  constexpr std::int64_t kDepth = 139;
  for (const bool is_kn : {false, true}) {
    for (const std::int64_t n : {1, 63, 64, 65, 127, 128, 129}) {
      CAPTURE(n, is_kn);
      Fields fields = shape(kRows, n, kDepth);
      fields.emplace_back("w_transposed", is_kn);
      const auto problem = matmul().parse(fields);
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
                   static_cast<double>(
                       w[static_cast<std::size_t>(is_kn ? k * n + element % n : element % n * kDepth + k)]);
          CHECK(std::abs(span.values[e] - sum) <= 1e-12);  // 139 roundings of sums below 100
        }
      }
      CHECK(seen == std::vector<int>(seen.size(), 1));
    }
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
