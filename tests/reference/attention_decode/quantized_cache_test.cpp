// attention_decode over codes and scales: what each byte means, where it lies, and that a misreading fails the judge.
#include <cmath>
#include <limits>

#include "harness/judge/judge.hpp"
#include "tests/reference/attention_decode/naive_runs.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Bytes that take in -128, 127, 0 and both extreme nibbles, all 256 of them in 256 neighbours.
float byte_at(std::int64_t i) { return static_cast<float>((i * 37 + 8) % 256); }

// A power of two, so that codes times scales are exact: another one for each of 16 neighbours.
float scale_at(std::int64_t i) { return std::ldexp(1.0F, static_cast<int>(i * 5 % 16) - 12); }

void fill_codes(std::vector<TensorSpec>& specs) {
  tensor_named(specs, "k").source = &byte_at;
  tensor_named(specs, "v").source = &byte_at;
  tensor_named(specs, "kv_scales").source = &scale_at;
}

int signed_nibble(int bits) { return bits < 8 ? bits : bits - 16; }
int signed_byte(int bits) { return bits < 128 ? bits : bits - 256; }

// The judge's word on outputs that were computed from other inputs than the problem's own.
Check judged(const DecodeShape& shape, const VariantRun& run) {
  const Operator& op = *find_operator("attention_decode");
  const auto problem = op.parse(shape.fields());
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  std::vector<OutputView> views;
  for (const TensorSpec& spec : specs)
    if (spec.role == Role::output) views.push_back({.spec = &spec, .data = run.raw.at(spec.name).data()});
  const auto tolerance = [&](std::string_view tensor) { return op.tolerance(problem.get(), tensor); };
  return judge(views, op.expect(problem.get(), Inputs(specs, 1), 1, 1), tolerance, op.reference, 1);
}

}  // namespace

TEST_CASE("attention_decode codes: of one key O is the value, int8 bytes in order", "[attention_decode][reference]") {
  // [batch 2, kv_heads 2, capacity 1, 64 bytes], scales [2, 2, 1, groups 2, (K, V)].
  const VariantRun run =
      check_passes({.contexts = {1, 1}, .q_heads = 2, .kv_heads = 2, .kv_bits = 8, .kv_group_size = 32, .dtype = "f32"},
                   &fill_codes);
  for (std::int64_t row = 0; row < 4; ++row)  // sequence and head
    for (std::int64_t d = 0; d < 64; ++d) {
      const float value = static_cast<float>(signed_byte(static_cast<int>(byte_at(row * 64 + d)))) *
                          scale_at((row * 2 + d / 32) * 2 + 1);
      REQUIRE(run.outputs.at("o")[static_cast<std::size_t>(row * 64 + d)] == value);
    }
}

TEST_CASE("attention_decode codes: of one key O is the value, int4 low nibble first", "[attention_decode][reference]") {
  // head_dim 96: 48 bytes a row, no padding. Blocks of 4 tokens, of which the second head starts 4 rows in.
  std::vector<std::int32_t> table;
  const VariantRun run = check_passes({.contexts = {1},
                                       .q_heads = 2,
                                       .kv_heads = 2,
                                       .head_dim = 96,
                                       .block_size = 4,
                                       .kv_bits = 4,
                                       .kv_group_size = 32,
                                       .dtype = "f32"},
                                      [&](std::vector<TensorSpec>& specs) {
                                        fill_codes(specs);
                                        table = Inputs(specs, 1).integers("block_table");
                                      });
  REQUIRE(table.size() == 1);
  for (std::int64_t head = 0; head < 2; ++head)
    for (std::int64_t d = 0; d < 96; ++d) {
      const std::int64_t row = (table[0] * 2 + head) * 4;
      const int byte = static_cast<int>(byte_at(row * 48 + d / 2));
      const float value =
          static_cast<float>(signed_nibble(d % 2 == 0 ? byte % 16 : byte / 16)) * scale_at((row * 3 + d / 32) * 2 + 1);
      REQUIRE(run.outputs.at("o")[static_cast<std::size_t>(head * 96 + d)] == value);
    }
}

TEST_CASE("attention_decode codes: FP8 E4M3 numbers mean what its specification says",
          "[attention_decode][reference]") {
  struct Named {
    int byte;
    float value;
  };
  // Table 2 of the OCP specification: largest, smallest normal, largest and smallest subnormal, one, zeros.
  const std::vector<Named> named{{0x7e, 448},     {0xfe, -448},     {0x08, 0x1p-6F}, {0x07, 0.875F * 0x1p-6F},
                                 {0x01, 0x1p-9F}, {0x81, -0x1p-9F}, {0x38, 1},       {0xb9, -1.125F},
                                 {0x77, 240},     {0x00, 0},        {0x80, 0},       {0x40, 2}};
  const VariantRun run = check_passes(
      {.contexts = {1}, .q_heads = 1, .kv_heads = 1, .kv_bits = 8, .kv_format = "fp8_e4m3", .dtype = "f32"},
      [&](std::vector<TensorSpec>& specs) {
        tensor_named(specs, "v").source = [&named](std::int64_t i) {
          return static_cast<float>(named[static_cast<std::size_t>(i) % named.size()].byte);
        };
        tensor_named(specs, "kv_scales").source = [](std::int64_t i) { return i == 1 ? 0.5F : 3.0F; };
      });
  for (std::size_t d = 0; d < 64; ++d) CHECK(run.outputs.at("o")[d] == named[d % named.size()].value * 0.5F);
}

TEST_CASE("attention_decode codes: every width, format, group, head and cache agrees with double precision",
          "[attention_decode][reference]") {
  struct Kind {
    std::int64_t bits;
    const char* format;
  };
  for (const Kind kind : {Kind{8, "integer"}, Kind{8, "fp8_e4m3"}, Kind{4, "integer"}})
    for (const std::int64_t head_dim : {8, 64, 80, 96, 128, 256})
      for (const std::int64_t group : {0, 32, 64, 128}) {
        if (group != 0 && head_dim % group != 0) continue;
        for (const std::int64_t block_size : {0, 1, 16})
          check_passes({.contexts = {70, 1, 0, 33},
                        .q_len = 2,
                        .head_dim = head_dim,
                        .block_size = block_size,
                        .kv_bits = kind.bits,
                        .kv_format = kind.format,
                        .kv_group_size = group});
      }
}

TEST_CASE("attention_decode codes: every dtype and group of query heads agrees with double precision",
          "[attention_decode][reference]") {
  for (const char* dtype : {"f16", "bf16", "f32"})
    for (const std::int64_t group : {1, 5, 8, 12, 64})
      check_passes({.contexts = {130, 7},
                    .q_len = 3,
                    .q_heads = 3 * group,
                    .kv_heads = 3,
                    .block_size = 16,
                    .kv_bits = 4,
                    .kv_group_size = 32,
                    .dtype = dtype});
}

TEST_CASE("attention_decode codes: what lies in free slots and behind padded rows changes nothing",
          "[attention_decode][reference]") {
  for (const std::int64_t block_size : {0, 4}) {
    const DecodeShape shape{
        .contexts = {32, 13, 0, 48}, .head_dim = 80, .block_size = block_size, .kv_bits = 4};  // 40 of 48 bytes
    const VariantRun clean = run_naive(shape, [](std::vector<TensorSpec>& specs) {
      for (TensorSpec& spec : specs) spec.unused.clear();
    });
    CHECK(check_passes(shape).raw == clean.raw);
  }
}

TEST_CASE("attention_decode codes: a misread cache fails the judge", "[attention_decode][reference][controls]") {
  for (const std::int64_t block_size : {0, 16}) {
    const DecodeShape shape{.contexts = {300, 70}, .block_size = block_size, .kv_bits = 4, .kv_group_size = 32};
    CAPTURE(block_size);
    REQUIRE(judged(shape, run_naive(shape)).passed);
    // As if the kernel took element `from(i)` of a tensor where it should take element i.
    const auto fails = [&](const std::string& name, const std::function<std::int64_t(std::int64_t)>& from) {
      const VariantRun wrong = run_naive(shape, [&](std::vector<TensorSpec>& specs) {
        TensorSpec& spec = tensor_named(specs, name);
        spec.unused.clear();
        const std::vector<float> values = Inputs(specs, 1).read(name, 0, spec.elements());
        spec.source = [values, from](std::int64_t i) { return values[static_cast<std::size_t>(from(i))]; };
      });
      CHECK_FALSE(judged(shape, wrong).passed);
    };
    fails("kv_scales", [](std::int64_t i) { return i ^ 1; });                       // K's for V's
    fails("kv_scales", [](std::int64_t i) { return i ^ 2; });                       // the other group's
    fails("kv_scales", [](std::int64_t i) { return i / 4 % 2 == 0 ? i : i - 4; });  // the token's before
    fails("k", [](std::int64_t i) { return i ^ 1; });
    fails("v", [](std::int64_t i) { return i ^ 1; });
    fails("v", [](std::int64_t i) { return i / 32 % 2 == 0 ? i : i - 32; });  // the token's before
    for (const char* name : {"k", "v"}) {
      const VariantRun swapped = run_naive(shape, [&](std::vector<TensorSpec>& specs) {  // high nibble first
        TensorSpec& spec = tensor_named(specs, name);
        const std::vector<float> values = Inputs(specs, 1).read(name, 0, spec.elements());
        spec.unused.clear();
        spec.source = [values](std::int64_t i) {
          const int byte = static_cast<int>(values[static_cast<std::size_t>(i)]);
          return static_cast<float>(byte / 16 + byte % 16 * 16);
        };
      });
      CHECK_FALSE(judged(shape, swapped).passed);
    }
  }
}

TEST_CASE("attention_decode codes: random codes and scales make elements of root mean square 1",
          "[attention_decode][reference]") {
  struct Kind {
    std::int64_t bits;
    const char* format;
  };
  for (const Kind kind : {Kind{8, "integer"}, Kind{8, "fp8_e4m3"}, Kind{4, "integer"}}) {
    CAPTURE(kind.bits, kind.format);
    // 512 sequences of one key: O is V.
    const VariantRun run = check_passes({.contexts = std::vector<std::int64_t>(512, 1),
                                         .q_heads = 2,
                                         .kv_heads = 2,
                                         .head_dim = 128,
                                         .kv_bits = kind.bits,
                                         .kv_format = kind.format,
                                         .kv_group_size = 32,
                                         .dtype = "f32"});
    double squares = 0;
    for (const float o : run.outputs.at("o")) squares += static_cast<double>(o) * o;
    // 131072 elements whose squares vary by at most 4 times their mean (FP8): 0.011 of it, and half of that at the
    // root.
    CHECK(std::sqrt(squares / 131072) == Approx(1.0).epsilon(0.025));
  }
}
