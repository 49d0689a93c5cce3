// kv_append / cpu.naive against bytes worked out here, and against its judge over shapes.
#include <algorithm>
#include <cmath>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;
using test::run_variant;
using test::VariantRun;

namespace {

Value number(std::int64_t value) { return value; }
Value list(std::vector<std::int64_t> values) { return values; }

std::uint8_t byte_at(const VariantRun& run, const std::string& name, std::size_t at) {
  return static_cast<std::uint8_t>(run.raw.at(name).at(at));
}

}  // namespace

TEST_CASE("kv_append cpu.naive: one token in its block, by hand", "[kv_append][reference]") {
  // Sequence 1 holds 3 tokens; its fourth goes to slot 1 of its second block. Two heads of 8 elements.
  const Fields fields = {{"batch", number(2)},    {"contexts", list({0, 3})}, {"kv_heads", number(2)},
                         {"head_dim", number(8)}, {"block_size", number(2)},  {"kv_bits", number(8)}};
  const VariantRun run = run_variant("kv_append", "cpu.naive", fields, 1, [](std::vector<TensorSpec>& specs) {
    // k: -127 .. in steps; v: 127 everywhere. [2, 1, 2, 8]: token of sequence 1 begins at 16.
    specs[0].source = [](std::int64_t i) { return static_cast<float>(i == 16 + 8 ? -127 : i % 8); };
    specs[1].source = [](std::int64_t) { return 254.0F; };
    specs[3].source = std::vector<std::int32_t>{4, -1, 2, 5};
    for (std::size_t i = 4; i < specs.size(); ++i) specs[i].unused.clear();
  });
  // Block 5, head 1, slot 1, rows of 16 bytes and scales of [1, 2].
  const std::size_t row = (5 * 2 + 1) * 2 + 1;
  CHECK(byte_at(run, "k", row * 16) == 129);  // -127
  for (std::size_t d = 1; d < 8; ++d) CHECK(byte_at(run, "k", row * 16 + d) == d);
  for (std::size_t d = 8; d < 16; ++d) CHECK(byte_at(run, "k", row * 16 + d) == 0x80);  // padding keeps its poison
  for (std::size_t d = 0; d < 8; ++d) CHECK(byte_at(run, "v", row * 16 + d) == 127);
  CHECK(run.outputs.at("kv_scales").at(row * 2) == 1);
  CHECK(run.outputs.at("kv_scales").at(row * 2 + 1) == 2);
  // Sequence 0's first token: block 4, head 0, slot 0.
  CHECK(byte_at(run, "k", 4 * 2 * 2 * 16 + 7) == 127);
  // Two rows of K in each of two heads were written, of the 16 bytes each 8.
  const std::vector<std::byte>& k = run.raw.at("k");
  CHECK(std::count_if(k.begin(), k.end(), [](std::byte b) { return b != std::byte{0x80}; }) == 2 * 2 * 8);
}

TEST_CASE("kv_append cpu.naive: kv_bits 16 stores the bits it was given", "[kv_append][reference]") {
  for (const char* dtype : {"f16", "bf16", "f32"}) {
    const Fields fields = {{"batch", number(2)},    {"contexts", list({1, 4})}, {"new_tokens", number(3)},
                           {"kv_heads", number(2)}, {"head_dim", number(8)},    {"dtype", std::string(dtype)}};
    const Operator& op = *find_operator("kv_append");
    const auto problem = op.parse(fields);
    const Inputs inputs(op.tensors(problem.get()), 1);
    const VariantRun run = run_variant("kv_append", "cpu.naive", fields);
    CHECK(run.check.passed);
    // New token 2 of sequence 1 is token 6 of it, of a capacity of 7.
    const std::vector<float> given = inputs.read("v_new", (1 * 3 + 2) * 16, 16);
    const std::vector<float>& v = run.outputs.at("v");
    CHECK(std::equal(given.begin(), given.end(), v.begin() + (1 * 7 + 6) * 16));
  }
}

TEST_CASE("kv_append cpu.naive: passes its judge in every format, dtype, group size and kind of cache",
          "[kv_append][reference]") {
  for (const std::int64_t block_size : {0, 1, 5, 16, 512})
    for (const char* dtype : {"f16", "bf16", "f32"})
      for (const auto& [kv_bits, kv_format] :
           {std::pair{16, "integer"}, {8, "integer"}, {8, "fp8_e4m3"}, {4, "integer"}})
        for (const std::int64_t group : {0, 32}) {
          if (kv_bits == 16 && group != 0) continue;
          const Fields fields = {{"batch", number(4)},
                                 {"contexts", list({0, 15, 16, 40})},
                                 {"new_tokens", number(17)},
                                 {"kv_heads", number(3)},
                                 {"head_dim", number(96)},
                                 {"block_size", number(block_size)},
                                 {"kv_bits", number(kv_bits)},
                                 {"kv_format", std::string(kv_format)},
                                 {"kv_group_size", number(group)},
                                 {"dtype", std::string(dtype)}};
          CAPTURE(to_string(fields));
          const VariantRun run = run_variant("kv_append", "cpu.naive", fields);
          INFO(run.check.reason);
          CHECK(run.check.passed);
        }
}

TEST_CASE("kv_append cpu.naive: every head_dim that is a multiple of 8 passes", "[kv_append][reference]") {
  for (std::int64_t head_dim = 8; head_dim <= 256; head_dim += 8)
    for (const std::int64_t kv_bits : {16, 8, 4}) {
      CAPTURE(head_dim, kv_bits);
      const VariantRun run = run_variant("kv_append", "cpu.naive",
                                         {{"context", number(3)},
                                          {"new_tokens", number(4)},
                                          {"head_dim", number(head_dim)},
                                          {"kv_bits", number(kv_bits)}});
      INFO(run.check.reason);
      CHECK(run.check.passed);
    }
}

TEST_CASE("kv_append: storage_rel_error is that of the format", "[kv_append][reference]") {
  const auto error_of = [](std::int64_t kv_bits, const char* format, std::int64_t group) {
    const Fields fields = {{"new_tokens", number(64)},
                           {"kv_heads", number(4)},
                           {"kv_bits", number(kv_bits)},
                           {"kv_format", std::string(format)},
                           {"kv_group_size", number(group)}};
    const Operator& op = *find_operator("kv_append");
    const auto problem = op.parse(fields);
    const std::vector<TensorSpec> specs = op.tensors(problem.get());
    const VariantRun run = run_variant("kv_append", "cpu.naive", fields);
    std::vector<const void*> tensors;
    for (const TensorSpec& spec : specs)
      tensors.push_back(spec.role == Role::output ? run.raw.at(spec.name).data() : nullptr);
    const std::vector<Metric> metrics = op.metrics(problem.get(), Inputs(specs, 1), tensors, 2);
    REQUIRE(metrics.size() == 1);
    CHECK(metrics[0].name == "storage_rel_error");
    return metrics[0].value;
  };
  // Rounding errs by step / sqrt(12). The greatest of 128 near-normal values is about 2.5 standard deviations, so that
  // the step is 2.5 / 127 or 2.5 / 7 of one; of 32 values, about 2.2. E4M3 has 4 significant bits: steps of 1/8 to 1/16
  // of the value, 0.026 root mean square.
  CHECK(error_of(8, "integer", 0) == Approx(2.5 / 127 / std::sqrt(12)).epsilon(0.1));
  CHECK(error_of(4, "integer", 0) == Approx(2.5 / 7 / std::sqrt(12)).epsilon(0.1));
  CHECK(error_of(4, "integer", 32) == Approx(2.2 / 7 / std::sqrt(12)).epsilon(0.1));
  CHECK(error_of(8, "fp8_e4m3", 0) == Approx(0.026).epsilon(0.1));
}
