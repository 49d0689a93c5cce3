// rms_norm / cpu.eigen against numbers worked out here, and against its judge over shapes.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"
#include "tests/support/tensor_named.hpp"

using namespace inferometer;
using test::run_variant;
using test::tensor_named;
using test::VariantRun;

namespace {

constexpr auto kTags = "[rms_norm][reference]";

Fields fields_of(std::int64_t rows, std::int64_t hidden, bool residual, const std::string& dtype) {
  return {{"rows", rows}, {"hidden", hidden}, {"residual", residual}, {"dtype", dtype}};
}

// Y of one row of `hidden` elements x(i) with gains of 2.
VariantRun run_row(std::int64_t hidden, const std::string& dtype, const std::function<float(std::int64_t)>& x) {
  return run_variant("rms_norm", "cpu.eigen", fields_of(1, hidden, false, dtype), 1,
                     [&x](std::vector<TensorSpec>& specs) {
                       tensor_named(specs, "x").source = x;
                       tensor_named(specs, "w").source = [](std::int64_t) { return 2.0F; };
                     });
}

}  // namespace

TEST_CASE("rms_norm cpu.eigen: a row of 3 and 4, by hand", kTags) {
  // Mean square 12.5 of the first row; the second is a thousandth of it, where eps of 1e-5 weighs nearly as much.
  const VariantRun run =
      run_variant("rms_norm", "cpu.eigen", fields_of(2, 2, false, "f16"), 1, [](std::vector<TensorSpec>& specs) {
        tensor_named(specs, "x").source = [](std::int64_t i) {
          return (i % 2 == 0 ? 3.0F : 4.0F) * (i < 2 ? 1.0F : 0.001F);
        };
        tensor_named(specs, "w").source = [](std::int64_t i) { return i == 0 ? 1.0F : -2.0F; };
      });
  const std::vector<float>& y = run.outputs.at("y");
  CHECK(y[0] == Approx(3 / std::sqrt(12.5)).epsilon(0x1p-11));
  CHECK(y[1] == Approx(-8 / std::sqrt(12.5)).epsilon(0x1p-11));
  CHECK(y[2] == Approx(0.003 / std::sqrt(12.5e-6 + 1e-5)).epsilon(0x1p-10));  // 0.003 is rounded to f16 too
  CHECK(y[3] == Approx(-0.008 / std::sqrt(12.5e-6 + 1e-5)).epsilon(0x1p-10));
}

TEST_CASE("rms_norm cpu.eigen: the residual sum is rounded, stored, and is what is normed", kTags) {
  // 2048 + 1 is 2048 in f16, ties to even.
  const VariantRun run =
      run_variant("rms_norm", "cpu.eigen", fields_of(1, 2, true, "f16"), 1, [](std::vector<TensorSpec>& specs) {
        tensor_named(specs, "h").source = [](std::int64_t i) { return i == 0 ? 2048.0F : 0.0F; };
        tensor_named(specs, "x").source = [](std::int64_t i) { return i == 0 ? 1.0F : 3.0F; };
        tensor_named(specs, "w").source = [](std::int64_t) { return 1.0F; };
      });
  CHECK(run.outputs.at("h_sum") == std::vector<float>{2048, 3});
  CHECK(run.outputs.at("y")[0] == Approx(std::sqrt(2.0)).epsilon(0x1p-11));
}

TEST_CASE("rms_norm cpu.eigen: zeros stay zeros, and the largest numbers become one", kTags) {
  const auto all_are = [](const VariantRun& run, float value) {
    const std::vector<float>& y = run.outputs.at("y");
    return std::all_of(y.begin(), y.end(), [value](float element) { return element == value; });
  };
  CHECK(all_are(run_row(4096, "f16", [](std::int64_t) { return 0.0F; }), 0));
  CHECK(all_are(run_row(4096, "f16", [](std::int64_t) { return 65504.0F; }), 2));
  CHECK(all_are(run_row(4096, "bf16", [](std::int64_t) { return 0x1.FEp127F; }), 2));  // its square passes f32
}

TEST_CASE("rms_norm cpu.eigen: an infinity is said by its own row alone", kTags) {
  const VariantRun run =
      run_variant("rms_norm", "cpu.eigen", fields_of(3, 8, false, "f16"), 1, [](std::vector<TensorSpec>& specs) {
        tensor_named(specs, "x").source = [](std::int64_t i) {
          return i == 8 + 5 ? std::numeric_limits<float>::infinity() : 1.0F;
        };
        tensor_named(specs, "w").source = [](std::int64_t) { return 1.0F; };
      });
  const std::vector<float>& y = run.outputs.at("y");
  for (std::size_t i = 0; i < y.size(); ++i) {
    CAPTURE(i);
    if (i == 8 + 5) {
      CHECK(std::isnan(y[i]));  // infinity over infinity
    } else {
      CHECK(y[i] == (i / 8 == 1 ? 0.0F : 1.0F));
    }
  }
}

TEST_CASE("rms_norm cpu.eigen: passes its judge for every width, with and without the residual stream", kTags) {
  for (const char* dtype : {"f16", "bf16"})
    for (const bool residual : {false, true})
      for (const std::int64_t hidden : {1, 7, 8, 64, 896, 5120, 16384, 20000})
        for (const std::int64_t rows : {1, 2, 33}) {
          const Fields fields = fields_of(rows, hidden, residual, dtype);
          CAPTURE(to_string(fields));
          const VariantRun run = run_variant("rms_norm", "cpu.eigen", fields);
          INFO(run.check.reason);
          CHECK(run.check.passed);
        }
}
