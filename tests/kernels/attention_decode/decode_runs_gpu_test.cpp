// The helpers of decode_runs.hpp, and the tests that they reach the kernels.
#include "tests/kernels/attention_decode/decode_runs.hpp"

#include <utility>

#include "harness/operator/generate.hpp"
#include "reference/kv_cache/quantize.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/sanitizer.hpp"

namespace inferometer::test {
namespace {

struct Token {
  std::int64_t sequence = -1;  // none
  std::int64_t index = 0;
};

// Which token each slot of the cache holds: slots of a page are neighbours, a page is a block or a sequence's
// reservation.
std::vector<Token> tokens_of_slots(const DecodeShape& c, std::vector<TensorSpec>& specs, std::int64_t slots) {
  std::vector<Token> tokens(static_cast<std::size_t>(tensor_named(specs, "k").shape[0] * slots));
  for (std::size_t b = 0; b < c.contexts.size(); ++b)
    for (std::int64_t t = 0; t < c.contexts[b]; ++t) {
      auto page = static_cast<std::int64_t>(b);
      if (c.block_size != 0) {
        const TensorSpec& table = tensor_named(specs, "block_table");
        const auto entry = static_cast<std::size_t>(page * table.shape[1] + t / slots);
        page = std::get<std::vector<std::int32_t>>(table.source)[entry];
      }
      tokens[static_cast<std::size_t>(page * slots + t % slots)] = {static_cast<std::int64_t>(b), t};
    }
  return tokens;
}

std::uint64_t random_bits(std::int64_t sequence, std::int64_t token, std::int64_t element) {
  return mix_bits(static_cast<std::uint64_t>((sequence << 44) + (token << 24) + element));
}

// Never the NaN of E4M3.
float random_code(std::int64_t sequence, std::int64_t token, std::int64_t element) {
  const auto byte = static_cast<unsigned>(random_bits(sequence, token, element) % 256);
  return static_cast<float>((byte & 0x7fU) == 0x7fU ? byte ^ 1U : byte);
}

// Root mean square of random codes.
float rms_of_codes(const DecodeShape& c) {
  if (c.kv_bits == 4) return 4.6F;
  return c.kv_format == "fp8_e4m3" ? 100.0F : 74.0F;
}

}  // namespace

std::string describe(const DecodeShape& c) {
  return to_string(c.fields()) + " variant=" + (c.block_size == 0 ? "cuda.contiguous" : "cuda.paged");
}

VariantRun run_decode(const DecodeShape& c, const EditTensors& edit) {
  INFO(describe(c));
  VariantRun run =
      run_variant("attention_decode", c.block_size == 0 ? "cuda.contiguous" : "cuda.paged", c.fields(), 1, edit);
  INFO(run.unsupported);
  REQUIRE(run.unsupported.empty());
  INFO(run.check.reason);
  CHECK(run.check.passed);
  return run;
}

std::vector<DecodeShape> in_every_code(DecodeShape c) {
  std::vector<DecodeShape> cases;
  for (const auto& [bits, format] : {std::pair{8, "integer"}, {8, "fp8_e4m3"}, {4, "integer"}}) {
    c.kv_bits = bits;
    c.kv_format = format;
    cases.push_back(c);
  }
  return cases;
}

std::vector<DecodeShape> in_every_format(const DecodeShape& c) {
  std::vector<DecodeShape> cases = in_every_code(c);
  cases.insert(cases.begin(), c);
  return cases;
}

std::vector<DecodeShape> in_every_code_and_group(const DecodeShape& c) {
  std::vector<DecodeShape> cases;
  for (DecodeShape code : in_every_code(c))
    for (const std::int64_t group : {0, 32, 64, 128}) {
      if (group != 0 && c.head_dim % group != 0) continue;
      if (group > 32 && under_sanitizer()) continue;  // the same kernel as with groups of 32
      code.kv_group_size = group;
      cases.push_back(code);
    }
  return cases;
}

TokenContents random_contents(const DecodeShape& c) {
  const auto random_scale = [rms = rms_of_codes(c)](std::int64_t sequence, std::int64_t token, std::int64_t element) {
    return (1.0F + 0.25F * random_value(sequence, token, element)) / rms;
  };
  return {.value = random_value, .code = random_code, .scale = random_scale};
}

EditTensors fill_tokens(const DecodeShape& c, const TokenContents& contents) {
  return [=](std::vector<TensorSpec>& specs) {
    // [page, slot, kv_head, element], or for codes [page, kv_head, slot, element]
    const bool codes = c.kv_bits != 16;
    const std::vector<std::int64_t>& shape = tensor_named(specs, "k").shape;
    const std::int64_t slots = shape[codes ? 2 : 1];
    const std::vector<Token> tokens = tokens_of_slots(c, specs, slots);
    const auto fill_codes = [&](const std::string& name, std::int64_t row, const TokenValue& value, float unused) {
      tensor_named(specs, name).unused.clear();
      tensor_named(specs, name).source = [=, heads = c.kv_heads](std::int64_t i) {
        const std::int64_t head = i / row / slots % heads;
        const Token token = tokens[static_cast<std::size_t>(i / row / slots / heads * slots + i / row % slots)];
        return token.sequence < 0 ? unused : value(token.sequence, token.index, head * row + i % row);
      };
    };
    const auto fill_elements = [&](const std::string& name, std::int64_t first) {
      TensorSpec& spec = tensor_named(specs, name);
      const std::int64_t row = spec.elements() / std::ssize(tokens);
      spec.unused.clear();
      spec.source = [=, used = c.kv_heads * c.head_dim](std::int64_t i) {
        const Token token = tokens[static_cast<std::size_t>(i / row)];
        const bool pads = token.sequence < 0 || i % row >= used;
        return pads ? contents.unused : contents.value(token.sequence, token.index, first + i % row);
      };
    };
    if (codes) {
      const TokenValue value_code = [=](std::int64_t sequence, std::int64_t token, std::int64_t element) {
        return contents.code(sequence, token, kValueElements + element);
      };
      const TokenValue either_scale = [=](std::int64_t sequence, std::int64_t token, std::int64_t element) {
        return contents.scale(sequence, token, element % 2 * kValueElements + element / 2);  // K's and V's take turns
      };
      fill_codes("k", shape.back(), contents.code, contents.unused_code);
      fill_codes("v", shape.back(), value_code, contents.unused_code);
      const std::vector<std::int64_t>& scales = tensor_named(specs, "kv_scales").shape;
      fill_codes("kv_scales", scales[3] * scales[4], either_scale, contents.unused);
    } else {
      fill_elements("k", 0);
      fill_elements("v", kValueElements);
    }
    const std::int64_t q_row = c.q_heads * c.head_dim;
    tensor_named(specs, "q").source = [=, q_len = c.q_len](std::int64_t i) {
      return contents.value(i / q_row / q_len, i / q_row % q_len, kQueryElements + i % q_row);
    };
  };
}

EditTensors fill_tokens(const DecodeShape& c, const TokenValue& value, float unused) {
  TokenContents contents = random_contents(c);
  contents.value = value;
  contents.unused = unused;
  return fill_tokens(c, contents);
}

float random_value(std::int64_t sequence, std::int64_t token, std::int64_t element) {
  return static_cast<float>(random_bits(sequence, token, element) % 4096) / 1024.0F - 2.0F;
}

float code_value(const DecodeShape& c, const std::function<float(std::int64_t)>& byte_at, std::int64_t d) {
  const auto byte = static_cast<std::uint8_t>(byte_at(c.kv_bits == 4 ? d / 2 : d));
  if (c.kv_format == "fp8_e4m3") return e4m3_value(byte);
  if (c.kv_bits == 8) return static_cast<std::int8_t>(byte);
  const int nibble = d % 2 == 0 ? byte % 16 : byte / 16;
  return static_cast<float>(nibble < 8 ? nibble : nibble - 16);
}

TEST_CASE("decode kernels: chosen contents reach the judge and the kernel alike", "[attention_decode][gpu]") {
  for (const std::int64_t block_size : {0, 16})
    for (const DecodeShape& c : in_every_format({.contexts = {40, 3}, .block_size = block_size, .kv_group_size = 32})) {
      const VariantRun chosen = run_decode(c, fill_tokens(c, random_contents(c)));
      const VariantRun others = run_decode(c);
      INFO(describe(c));
      CHECK(chosen.raw.at("o") != others.raw.at("o"));
    }
}

}  // namespace inferometer::test
