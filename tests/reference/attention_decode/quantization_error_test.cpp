// The cost of quantising a KV cache, as attention_decode reports it.
#include "reference/attention_decode/quantization_error.hpp"

#include <algorithm>
#include <string>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

AttentionDecodeProblem problem(std::int64_t context, std::int64_t bits, std::int64_t group,
                               const std::string& format = "integer") {
  AttentionDecodeProblem p;
  p.context = context;
  p.kv_bits = bits;
  p.kv_group_size = group;
  p.kv_format = format;
  return p;
}

constexpr std::uint64_t kSeed = 1;

}  // namespace

TEST_CASE("quantization error: fewer bits cost more, and keys with outliers most of it", "[attention_decode]") {
  for (const std::int64_t group : {32, 64, 128}) {
    CAPTURE(group);
    const QuantizationError eight = quantization_error(problem(4096, 8, group), kSeed, 2);
    const QuantizationError fp8 = quantization_error(problem(4096, 8, group, "fp8_e4m3"), kSeed, 2);
    const QuantizationError four = quantization_error(problem(4096, 4, group), kSeed, 2);
    CAPTURE(eight.both, fp8.both, four.both, eight.keys, four.keys);
    CHECK(eight.both > 0.001);
    CHECK(eight.both < 0.05);
    CHECK(fp8.both > 0.01);  // 3 bits of mantissa: each element errs by up to 2^-4 of itself, 0.026 on average
    CHECK(fp8.both < 0.06);
    CHECK(four.both > 5 * eight.both);
    CHECK(four.both > 2 * fp8.both);
    CHECK(eight.keys < eight.both);
    CHECK(eight.keys > 0.8 * eight.both);  // the values have no outliers
  }
}

TEST_CASE("quantization error: smaller groups keep outliers from their neighbours", "[attention_decode]") {
  for (const std::int64_t bits : {8, 4})
    for (const std::uint64_t seed : {1, 2, 3}) {
      CAPTURE(bits, seed);
      const double g32 = quantization_error(problem(4096, bits, 32), seed, 2).both;
      const double g64 = quantization_error(problem(4096, bits, 64), seed, 2).both;
      const double g128 = quantization_error(problem(4096, bits, 128), seed, 2).both;
      CHECK(g32 < g64);
      CHECK(g64 < g128);
      CHECK(quantization_error(problem(4096, bits, 0), seed, 2).both == g128);  // the whole head of 128
    }
}

TEST_CASE("quantization error: it does not drift with the length of the context", "[attention_decode]") {
  struct Kind {
    std::int64_t bits;
    const char* format;
  };
  for (const Kind kind : {Kind{8, "integer"}, Kind{8, "fp8_e4m3"}, Kind{4, "integer"}}) {
    std::vector<double> errors;
    for (std::int64_t context = 1024; context <= 16384; context *= 2)
      errors.push_back(quantization_error(problem(context, kind.bits, 64, kind.format), kSeed, 2).both);
    const auto [least, greatest] = std::minmax_element(errors.begin(), errors.end());
    CAPTURE(kind.bits, kind.format, errors);
    // 16 queries weigh e^-1 of n keys each: the error of 1024 keys is known to 1 / sqrt(2 * 16 * 1024 / e^2) = 1.5 %
    // and to what heavy weights add; a drift with sqrt(n) would be a factor of 4, with log(n) one of 1.4.
    CHECK(*greatest < 1.2 * *least);
  }
}

TEST_CASE("quantization error: the same for any number of threads, another for another seed", "[attention_decode]") {
  const auto p = problem(5000, 4, 32);
  const QuantizationError one = quantization_error(p, kSeed, 1);
  const QuantizationError three = quantization_error(p, kSeed, 3);
  CHECK(one.both == three.both);
  CHECK(one.keys == three.keys);
  CHECK(quantization_error(p, kSeed + 1, 1).both != one.both);
}

TEST_CASE("quantization error: another seed is another draw of the same figure", "[attention_decode]") {
  for (const std::int64_t group : {32, 128}) {
    std::vector<double> errors;
    for (const std::uint64_t seed : {1, 2, 3, 4, 5, 6})
      errors.push_back(quantization_error(problem(2048, 8, group), seed, 2).both);
    const auto [least, greatest] = std::minmax_element(errors.begin(), errors.end());
    CAPTURE(group, errors);
    // One set scatters by about a tenth, the mean of 16 by a quarter of that; six draws span 2.5 deviations, 6 %.
    CHECK(*greatest < 1.15 * *least);
    CHECK(*greatest > *least);
  }
}

TEST_CASE("quantization error: a window counts its own keys only", "[attention_decode]") {
  AttentionDecodeProblem windowed = problem(100'000, 4, 64);
  windowed.window_left = 999;
  CHECK(quantization_error(windowed, kSeed, 2).both == quantization_error(problem(1000, 4, 64), kSeed, 2).both);
  CHECK(quantization_error(problem(1, 8, 0), kSeed, 1).keys < 1e-14);  // of one key the score does not matter
  CHECK(quantization_error(problem(1, 8, 0), kSeed, 1).both > 0);
}

TEST_CASE("quantization error: rows of fewer than 16 bits report it, others do not", "[attention_decode]") {
  const Operator& op = *find_operator("attention_decode");
  const auto metrics = [&](std::int64_t bits) {
    const auto p = op.parse({{"context", std::int64_t{100}}, {"kv_bits", bits}});
    return op.metrics(p.get(), Inputs(op.tensors(p.get()), kSeed), {}, 1);
  };
  CHECK(metrics(16).empty());
  const std::vector<Metric> four = metrics(4);
  REQUIRE(four.size() == 2);
  CHECK(four[0].name == "quantization_rel_error");
  CHECK(four[1].name == "quantization_rel_error_keys");
  CHECK(four[0].value == quantization_error(problem(100, 4, 0), kSeed, 1).both);
}
