// The helpers of decode_runs.hpp, and the test that they reach the kernels.
#include <stdexcept>
#include <utility>

#include "harness/operator/generate.hpp"
#include "tests/kernels/attention_decode/decode_runs.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr std::int64_t kValueElements = std::int64_t{1} << 20;
constexpr std::int64_t kQueryElements = std::int64_t{1} << 21;

Fields fields_of(const DecodeCase& c) {
  return {{"batch", static_cast<std::int64_t>(c.contexts.size())},
          {"contexts", c.contexts},
          {"q_len", c.q_len},
          {"q_heads", c.q_heads},
          {"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"block_size", c.block_size},
          {"splits", c.splits},
          {"dtype", c.dtype}};
}

struct Token {
  std::int64_t sequence = -1;  // none
  std::int64_t index = 0;
};

// Which token each slot of the cache holds.
std::vector<Token> tokens_of_slots(const DecodeCase& c, std::vector<TensorSpec>& specs) {
  const std::vector<std::int64_t>& shape = spec_named(specs, "k").shape;  // [blocks, block_size] or [batch, context]
  std::vector<Token> tokens(static_cast<std::size_t>(shape[0] * shape[1]));
  for (std::size_t b = 0; b < c.contexts.size(); ++b)
    for (std::int64_t t = 0; t < c.contexts[b]; ++t) {
      std::int64_t row = static_cast<std::int64_t>(b);
      std::int64_t column = t;
      if (c.block_size != 0) {
        const TensorSpec& table = spec_named(specs, "block_table");
        const auto entry = static_cast<std::size_t>(row * table.shape[1] + t / c.block_size);
        row = std::get<std::vector<std::int32_t>>(table.source)[entry];
        column = t % c.block_size;
      }
      tokens[static_cast<std::size_t>(row * shape[1] + column)] = {static_cast<std::int64_t>(b), t};
    }
  return tokens;
}

}  // namespace

std::string describe(const DecodeCase& c) {
  return to_string(fields_of(c)) + " variant=" + (c.block_size == 0 ? "cuda.contiguous" : "cuda.paged");
}

VariantRun run_decode(const DecodeCase& c, const EditTensors& edit) {
  INFO(describe(c));
  VariantRun run =
      run_variant("attention_decode", c.block_size == 0 ? "cuda.contiguous" : "cuda.paged", fields_of(c), 1, edit);
  REQUIRE(run.unsupported.empty());
  INFO(run.check.reason);
  CHECK(run.check.passed);
  return run;
}

TensorSpec& spec_named(std::vector<TensorSpec>& specs, const std::string& name) {
  for (TensorSpec& spec : specs)
    if (spec.name == name) return spec;
  throw std::invalid_argument("no tensor '" + name + "'");
}

EditTensors fill_tokens(const DecodeCase& c, const TokenValue& value, float unused) {
  return [=](std::vector<TensorSpec>& specs) {
    const std::int64_t row = c.kv_heads * c.head_dim;
    const std::vector<Token> tokens = tokens_of_slots(c, specs);
    for (const auto& [name, first] : {std::pair{"k", std::int64_t{0}}, std::pair{"v", kValueElements}}) {
      TensorSpec& spec = spec_named(specs, name);
      spec.unused.clear();
      spec.source = [=, first = first](std::int64_t i) {
        const Token token = tokens[static_cast<std::size_t>(i / row)];
        return token.sequence < 0 ? unused : value(token.sequence, token.index, first + i % row);
      };
    }
    const std::int64_t q_row = c.q_heads * c.head_dim;
    spec_named(specs, "q").source = [=, q_len = c.q_len](std::int64_t i) {
      return value(i / q_row / q_len, i / q_row % q_len, kQueryElements + i % q_row);
    };
  };
}

float random_value(std::int64_t sequence, std::int64_t token, std::int64_t element) {
  const auto key = static_cast<std::uint64_t>((sequence << 44) + (token << 24) + element);
  return static_cast<float>(mix_bits(key) % 4096) / 1024.0F - 2.0F;
}

TEST_CASE("decode kernels: chosen values reach the judge and the kernel alike", "[attention_decode][gpu]") {
  DecodeCase c{.contexts = {40, 3}};
  for (const std::int64_t block_size : {0, 16}) {
    c.block_size = block_size;
    const VariantRun chosen = run_decode(c, fill_tokens(c, random_value, 0.0F));
    const VariantRun others = run_decode(c);
    CHECK(chosen.raw.at("o") != others.raw.at("o"));
  }
}

}  // namespace inferometer::test
