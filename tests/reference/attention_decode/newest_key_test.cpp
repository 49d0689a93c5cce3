// What random inputs let the judge see: the newest key, and a soft cap.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "harness/judge/judge.hpp"
#include "harness/operator/registry.hpp"
#include "reference/attention_decode/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/decode_shape.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::DecodeShape;

namespace {

const Operator& decode() { return *find_operator("attention_decode"); }

std::vector<TensorSpec> tensors_of(const DecodeShape& shape) {
  return decode().tensors(decode().parse(shape.fields()).get());
}

// What cpu.naive computes for `run`, with the queries of `asked` and judged as an answer to that.
Check check_of(const DecodeShape& asked, const DecodeShape& run) {
  const auto problem = decode().parse(asked.fields());
  const std::vector<TensorSpec> specs = decode().tensors(problem.get());
  const test::VariantRun done =
      test::run_variant("attention_decode", "cpu.naive", run.fields(), 1,
                        [&](std::vector<TensorSpec>& tensors) { tensors.front().source = specs.front().source; });
  std::vector<OutputView> outputs;
  for (const TensorSpec& spec : specs)
    if (spec.role == Role::output) outputs.push_back({.spec = &spec, .data = done.raw.at(spec.name).data()});
  return judge(
      outputs, decode().expect(problem.get(), Inputs(specs, 1), 1, 2),
      [&](std::string_view name) { return decode().tolerance(problem.get(), name); }, "", 2);
}

struct Format {
  std::int64_t kv_bits;
  std::string dtype;
};

}  // namespace

// One sequence of one KV head: a shorter cache is the beginning of the longer one.
TEST_CASE("attention_decode: without its newest key an answer fails, however long the context",
          "[attention_decode][judge][controls]") {
  for (const std::int64_t context : {33, 1000, 32'768, 131'072})
    for (const Format& format : {Format{16, "f16"}, {16, "bf16"}, {16, "f32"}, {8, "bf16"}, {4, "f16"}}) {
      const DecodeShape asked{.contexts = {context}, .kv_heads = 1, .kv_bits = format.kv_bits, .dtype = format.dtype};
      DecodeShape lacking = asked;
      lacking.contexts = {context - 1};
      CAPTURE(context, format.kv_bits, format.dtype);
      const Check right = check_of(asked, asked);
      INFO(right.reason);
      CHECK(right.passed);
      CHECK_FALSE(check_of(asked, lacking).passed);
    }
}

TEST_CASE("attention_decode: an answer without the soft cap fails, be it of 50 and in bf16",
          "[attention_decode][judge][controls]") {
  for (const std::int64_t context : {500, 4096, 32'768})
    for (const std::int64_t head_dim : {64, 128})
      for (const Format& format : {Format{16, "f16"}, {16, "bf16"}, {16, "f32"}, {8, "bf16"}, {4, "f16"}}) {
        if (head_dim == 64 && context > 4096) continue;  // a short key cannot have so high a score (queries.hpp)
        const DecodeShape asked{.contexts = {context},
                                .kv_heads = 1,
                                .head_dim = head_dim,
                                .kv_bits = format.kv_bits,
                                .soft_cap = 50,
                                .dtype = format.dtype};
        DecodeShape lacking = asked;
        lacking.soft_cap = 0;
        CAPTURE(context, head_dim, format.kv_bits, format.dtype);
        const Check right = check_of(asked, asked);
        INFO(right.reason);
        CHECK(right.passed);
        CHECK_FALSE(check_of(asked, lacking).passed);
      }
}

TEST_CASE("attention_decode: a query's score with its own key is the one meant, with others standard normal",
          "[attention_decode][inputs]") {
  constexpr std::int64_t kContext = 4096;
  constexpr std::int64_t kHeads = 64;
  constexpr std::int64_t kDim = 128;
  for (const std::int64_t q_len : {1, 3})
    for (const std::int64_t window : {-1, 99}) {
      const DecodeShape shape{.contexts = {kContext},
                              .q_len = q_len,
                              .q_heads = kHeads,
                              .kv_heads = 1,
                              .head_dim = kDim,
                              .window_left = window,
                              .dtype = "f32"};
      CAPTURE(q_len, window);
      const Inputs inputs(tensors_of(shape), 1);
      const std::vector<float> q = inputs.read("q", 0, q_len * kHeads * kDim);
      const auto score = [&](std::int64_t query, std::int64_t head, std::int64_t token) {
        const std::vector<float> k = inputs.read("k", token * kDim, kDim);
        double sum = 0;
        for (std::int64_t d = 0; d < kDim; ++d)
          sum += static_cast<double>(q[static_cast<std::size_t>((query * kHeads + head) * kDim + d)]) *
                 k[static_cast<std::size_t>(d)];
        return sum / std::sqrt(static_cast<double>(kDim));
      };
      for (std::int64_t query = 0; query < q_len; ++query) {
        const std::int64_t own = kContext - q_len + query;
        double own_sum = 0;
        double squares = 0;
        for (std::int64_t head = 0; head < kHeads; ++head) {
          own_sum += score(query, head, own);
          for (std::int64_t token = 0; token < 64; ++token) squares += std::pow(score(query, head, token), 2);
        }
        AttentionDecodeProblem problem;
        problem.window_left = window;
        const double meant = newest_score(problem, window < 0 ? own + 1 : window + 1);
        // Means of 64 scores within a deviation of 1 / 8 each; variances of 64 x 64 scores, which share 64 keys'
        // lengths.
        CHECK(std::abs(own_sum / kHeads - meant) < 5.0 / 8);
        CHECK(squares / (kHeads * 64) == Approx(1).epsilon(0.1));
      }
    }
}

TEST_CASE("attention_decode: queries are the same for any cut into ranges, and plain before a sequence's start",
          "[attention_decode][inputs]") {
  for (const std::int64_t block_size : {0, 16}) {
    const DecodeShape shape{.contexts = {40, 1, 0}, .q_len = 2, .block_size = block_size, .kv_bits = 8};
    const Inputs inputs(tensors_of(shape), 7);
    const std::int64_t elements = inputs.specs().front().elements();
    const std::vector<float> whole = inputs.read("q", 0, elements);
    std::vector<float> parts;
    for (std::int64_t begin = 0; begin < elements; begin += 37) {
      const std::vector<float> part = inputs.read("q", begin, std::min<std::int64_t>(37, elements - begin));
      parts.insert(parts.end(), part.begin(), part.end());
    }
    CHECK(parts == whole);
    // Of [3, q_len, q_heads, head_dim] the first query of sequence 1 and both of sequence 2 see nothing.
    std::vector<TensorSpec> plain = inputs.specs();
    plain.front().source = Normal{};
    const std::vector<float> normal = Inputs(plain, 7).read("q", 0, elements);
    const auto row = static_cast<std::ptrdiff_t>(elements / 6);
    CHECK(std::equal(whole.begin() + 2 * row, whole.begin() + 3 * row, normal.begin() + 2 * row));
    CHECK(std::equal(whole.begin() + 4 * row, whole.end(), normal.begin() + 4 * row));
    CHECK_FALSE(std::equal(whole.begin(), whole.begin() + row, normal.begin()));
  }
}
