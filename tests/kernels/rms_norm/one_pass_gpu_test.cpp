// rms_norm / cuda.one_pass over every way in which threads hold rows, and over the numbers that break norms.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "harness/measure/device.hpp"
#include "harness/operator/dtype.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/tensor_named.hpp"

namespace inferometer::test {
namespace {

constexpr auto kTags = "[rms_norm][gpu]";
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NormCase {
  std::int64_t rows = 1;
  std::int64_t hidden = 4096;
  bool residual = false;
  const char* dtype = "f16";
};

Fields fields_of(const NormCase& c) {
  return {{"rows", c.rows}, {"hidden", c.hidden}, {"residual", c.residual}, {"dtype", std::string(c.dtype)}};
}

VariantRun run_norm(const NormCase& c, const EditTensors& edit = {}) {
  return run_variant("rms_norm", "cuda.one_pass", fields_of(c), 1, edit);
}

void check_norm(const NormCase& c, const EditTensors& edit = {}) {
  const VariantRun run = run_norm(c, edit);
  INFO(to_string(fields_of(c)));
  REQUIRE(run.unsupported.empty());
  INFO(run.check.reason);
  CHECK(run.check.passed);
  if (!c.residual) return;
  // One addition and one rounding: no two right answers.
  CHECK(run.raw.at("h_sum") == run_variant("rms_norm", "cpu.eigen", fields_of(c), 1, edit).raw.at("h_sum"));
}

// Gains of 1, and X of element(row, column).
EditTensors fill_x(std::int64_t hidden, const std::function<float(std::int64_t, std::int64_t)>& element) {
  return [=](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "w").source = [](std::int64_t) { return 1.0F; };
    tensor_named(specs, "x").source = [=](std::int64_t i) { return element(i / hidden, i % hidden); };
  };
}

TEST_CASE(
    "rms_norm kernel: rows in parts of a warp, in a warp and in a block, in both types, with residual and without",
    kTags) {
  for (const std::int64_t hidden :
       {8, 16, 24, 32, 64, 72, 128, 256, 504, 512, 520, 896, 1024, 1032, 4096, 5120, 8192, 8200, 16376, 16384})
    for (const std::int64_t rows : {1, 2, 31, 257})
      for (const char* dtype : {"f16", "bf16"})
        for (const bool residual : {false, true})
          check_norm({.rows = rows, .hidden = hidden, .residual = residual, .dtype = dtype});
}

TEST_CASE("rms_norm kernel: every width that is a multiple of 8", kTags) {
  for (std::int64_t hidden = 8; hidden <= 2048; hidden += 8)
    check_norm({.rows = 3, .hidden = hidden, .residual = hidden % 16 == 0, .dtype = "bf16"});
}

TEST_CASE("rms_norm kernel: many rows, more than the GPU holds at once", kTags) {
  check_norm({.rows = 100000, .hidden = 128, .dtype = "bf16"});
  check_norm({.rows = 8192, .hidden = 4096, .residual = true});
}

TEST_CASE("rms_norm kernel: a row's bits do not depend on the batch that it is in", kTags) {
  for (const std::int64_t hidden : {64, 896, 4096})
    for (const bool residual : {false, true}) {
      CAPTURE(hidden, residual);
      const VariantRun one = run_norm({.rows = 1, .hidden = hidden, .residual = residual});
      const VariantRun many = run_norm({.rows = 1000, .hidden = hidden, .residual = residual});
      for (const auto& [name, bytes] : one.raw) {
        CAPTURE(name);
        CHECK(std::equal(bytes.begin(), bytes.end(), many.raw.at(name).begin()));
      }
    }
}

TEST_CASE("rms_norm kernel: rows of zeros, of the smallest, of large and of the largest numbers, side by side", kTags) {
  struct Format {
    const char* dtype;
    std::vector<float> magnitudes;  // the last ones' squares pass f16, and the very last one's f32
  };
  const std::vector<Format> formats = {{"f16", {0, 0x1p-24F, 0x1p-14F, 1, 256, 40000, 65504}},
                                       {"bf16", {0, 0x1p-133F, 0x1p-126F, 1, 256, 1e18F, 0x1p64F, 1e20F, 0x1.FEp127F}}};
  for (const Format& format : formats)
    for (const std::int64_t hidden : {8, 64, 512, 4096, 16384}) {
      const auto rows = std::ssize(format.magnitudes);
      const EditTensors edit = fill_x(hidden, [&](std::int64_t row, std::int64_t column) {
        const float magnitude = format.magnitudes[static_cast<std::size_t>(row)];
        return column % 3 == 0 ? -magnitude : magnitude;
      });
      const NormCase c{.rows = rows, .hidden = hidden, .dtype = format.dtype};
      check_norm(c, edit);
      const std::vector<float> y = run_norm(c, edit).outputs.at("y");
      for (std::int64_t row = 0; row < rows; ++row) {
        CAPTURE(format.dtype, hidden, row);
        const float magnitude = format.magnitudes[static_cast<std::size_t>(row)];
        const float first = y[static_cast<std::size_t>(row * hidden)];
        if (magnitude == 0) CHECK(first == 0);
        if (magnitude >= 256) CHECK(first == -1);
      }
    }
}

TEST_CASE("rms_norm kernel: one large number in a row of ordinary ones takes the row", kTags) {
  for (const std::int64_t hidden : {64, 4096})
    check_norm({.rows = 5, .hidden = hidden, .dtype = "bf16"},
               fill_x(hidden, [=](std::int64_t row, std::int64_t column) {
                 return row == 3 && column == hidden - 1 ? 1e30F : static_cast<float>(column % 7 - 3);
               }));
}

TEST_CASE("rms_norm kernel: infinity and NaN are said by their own row alone", kTags) {
  for (const char* dtype : {"f16", "bf16"})
    for (const std::int64_t hidden : {64, 512, 4096}) {
      CAPTURE(dtype, hidden);
      const VariantRun run = run_norm(
          {.rows = 5, .hidden = hidden, .dtype = dtype}, fill_x(hidden, [](std::int64_t row, std::int64_t column) {
            if (column != 5) return 1.0F;
            return row == 1 ? -kInfinity : (row == 3 ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
          }));
      const std::vector<float>& y = run.outputs.at("y");
      for (std::int64_t i = 0; i < std::ssize(y); ++i) {
        const std::int64_t row = i / hidden;
        const bool is_nan = row == 3 || (row == 1 && i % hidden == 5);
        CAPTURE(i);
        const float value = y[static_cast<std::size_t>(i)];
        REQUIRE((is_nan ? std::isnan(value) : value == (row == 1 ? 0.0F : 1.0F)));
      }
    }
}

TEST_CASE("rms_norm kernel: a residual sum is rounded to even, and past the largest number infinite", kTags) {
  const VariantRun run = run_norm({.rows = 2, .hidden = 8, .residual = true}, [](std::vector<TensorSpec>& specs) {
    tensor_named(specs, "x").source = [](std::int64_t i) { return i < 8 ? 1.0F : 40000.0F; };
    tensor_named(specs, "h").source = [](std::int64_t i) {
      return i < 8 ? 2048.0F + 2 * static_cast<float>(i) : 40000.0F;
    };
  });
  // Numbers of f16 are 2 apart here: 2049 lies half-way, and so do 2051 and on.
  CHECK(run.outputs.at("h_sum") == std::vector<float>{2048, 2052, 2052, 2056, 2056, 2060, 2060, 2064,  //
                                                      kInfinity, kInfinity, kInfinity, kInfinity,      //
                                                      kInfinity, kInfinity, kInfinity, kInfinity});
}

TEST_CASE("rms_norm kernel: rows past 2^32 elements are the right ones", kTags) {
  const Operator& op = *find_operator("rms_norm");
  const std::int64_t hidden = 4096;
  const auto problem = op.parse(fields_of({.rows = (std::int64_t{1} << 32) / hidden + 3, .hidden = hidden}));
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  const std::unique_ptr<Device> device = gpu();
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> pointers;
  try {
    for (const TensorSpec& spec : specs) {
      memory.emplace_back(device->allocate(static_cast<std::size_t>(spec.bytes())),
                          [&device](void* p) { device->release(p); });
      pointers.push_back(memory.back().get());
      device->fill(spec, 1, pointers.size() - 1, pointers.back());
    }
  } catch (const OutOfMemory& error) {
    WARN("not tested: " << error.what());
    return;
  }
  const Variant& variant = *find_variant("rms_norm", "cuda.one_pass");
  REQUIRE_FALSE(variant.unsupported(problem.get()).has_value());
  variant.run(problem.get(), op.bind(problem.get(), pointers).get(), device->launch());
  device->synchronize();
  std::int64_t compared = 0;
  for (const ExpectedSpan& span : op.expect(problem.get(), Inputs(specs, 1), 1, 4)) {
    if (span.begin < std::int64_t{1} << 31) continue;
    ++compared;
    std::vector<std::uint16_t> y(span.values.size());
    device->copy_to_host(y.data(), static_cast<const std::uint16_t*>(pointers[2]) + span.begin, 2 * y.size());
    for (std::size_t i = 0; i < y.size(); ++i)
      REQUIRE(f16_value(y[i]) == Approx(span.values[i]).epsilon(0x1p-10).margin(1e-6));
  }
  CHECK(compared > 0);
}

TEST_CASE("rms_norm kernel: what it cannot do is said in a sentence", kTags) {
  for (const std::int64_t hidden : {4097, 4, 16392})
    CHECK(run_norm({.hidden = hidden}).unsupported ==
          "hidden must be a multiple of 8 up to 16384, got " + std::to_string(hidden));
  CHECK(run_norm({.rows = std::int64_t{1} << 31, .hidden = 8}).unsupported ==
        "rows must be at most 2147483647, got 2147483648");
}

}  // namespace
}  // namespace inferometer::test
