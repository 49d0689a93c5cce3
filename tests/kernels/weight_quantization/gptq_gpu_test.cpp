// cuda.gptq against cpu.gptq, code by code.
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/weight_quantization/quantized_weights.hpp"
#include "reference/weight_quantization/result_tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {
namespace {

using Problem = WeightQuantizationProblem;

struct Shape {
  std::int64_t n = 24;
  std::int64_t k = 200;
  std::int64_t group_size = 128;
  std::int64_t bits = 4;
  bool symmetric = true;
  std::int64_t tokens = 400;
  double damping = 0.01;
  const char* scale_dtype = "f16";
};

Fields fields_of(const Shape& s) {
  return {{"n", s.n},
          {"k", s.k},
          {"group_size", s.group_size},
          {"bits", s.bits},
          {"symmetric", s.symmetric},
          {"calibration_tokens", s.tokens},
          {"held_out_tokens", std::int64_t{8}},
          {"damping", s.damping},
          {"scale_dtype", std::string(s.scale_dtype)}};
}

struct Made {
  VariantRun run;
  MethodResult result;
};

Made make(const std::string& variant, const Fields& fields, const EditTensors& edit = {}) {
  Made made{.run = run_variant("weight_quantization", variant, fields, 1, edit), .result = {}};
  REQUIRE(made.run.unsupported.empty());
  const auto problem = find_operator("weight_quantization")->parse(fields);
  const std::vector<std::byte>& raw = made.run.raw.at("result");
  made.result = read_result(*static_cast<const Problem*>(problem.get()),
                            {reinterpret_cast<const std::int32_t*>(raw.data()), raw.size() / sizeof(std::int32_t)});
  return made;
}

// Sums in double precision, in another order, of up to 10^3 terms: codes differ where a weight lies within about 10^-13
// of the middle between two grid points, which happens to none of those below.
void check_same(const Made& gpu, const Made& cpu) {
  const QuantizerResult& g = gpu.result.quantized;
  const QuantizerResult& c = cpu.result.quantized;
  CHECK(g.weights.codes == c.weights.codes);
  CHECK(g.weights.scales == c.weights.scales);
  CHECK(g.weights.zeros == c.weights.zeros);
  CHECK(g.weights.group_index.empty());
  CHECK(g.weights.input_scales.empty());
  CHECK(g.damping == c.damping);
  REQUIRE(g.objective.has_value());
  CHECK(*g.objective == Approx(*c.objective).epsilon(1e-7).margin(0));  // a difference where H is damped
  CHECK(gpu.result.warnings == cpu.result.warnings);
  CHECK(g.seconds > 0);
  CHECK(gpu.result.calibration_seconds > 0);
}

// The layer with its activations at `input` replaced; the audit knows of the operator's own layer alone.
EditTensors with_activations(std::int64_t k, float (*value)(std::int64_t token, std::int64_t input)) {
  return [=](std::vector<TensorSpec>& specs) {
    specs.at(1).source = [=](std::int64_t at) { return value(at / k, at % k); };
  };
}

TEST_CASE("cuda.gptq: codes, scales and zeros are those of cpu.gptq, around the edges of tiles, blocks and groups",
          "[weight_quantization][gpu]") {
  for (const std::int64_t n : {1, 7, 8, 70}) {
    for (const std::int64_t k : {1, 2, 63, 64, 65, 127, 129, 300}) {
      for (const std::int64_t group_size : {1, 32, 48, 64, 100, 128, 0}) {
        const Shape shape{.n = n, .k = k, .group_size = group_size, .symmetric = (n + k) % 2 == 0};
        INFO(to_string(fields_of(shape)));
        const Made gpu = make("cuda.gptq", fields_of(shape));
        INFO(gpu.run.check.reason);
        CHECK(gpu.run.check.passed);
        check_same(gpu, make("cpu.gptq", fields_of(shape)));
      }
    }
  }
}

TEST_CASE("cuda.gptq: every grid is that of cpu.gptq", "[weight_quantization][gpu]") {
  for (const std::int64_t bits : {2, 3, 4, 5, 8}) {
    for (const bool symmetric : {true, false}) {
      for (const char* scale_dtype : {"f16", "bf16"}) {
        const Shape shape{.bits = bits, .symmetric = symmetric, .scale_dtype = scale_dtype};
        INFO(to_string(fields_of(shape)));
        const Made gpu = make("cuda.gptq", fields_of(shape));
        INFO(gpu.run.check.reason);
        CHECK(gpu.run.check.passed);
        check_same(gpu, make("cpu.gptq", fields_of(shape)));
      }
    }
  }
}

TEST_CASE("cuda.gptq: weights that are huge, tiny or 0 have the grids that they have on the CPU",
          "[weight_quantization][gpu]") {
  const Shape shapes[] = {{.n = 40, .k = 96, .group_size = 32},
                          {.n = 40, .k = 96, .group_size = 32, .symmetric = false}};
  for (const Shape& shape : shapes) {
    // Row by row: zeros, scales that overflow f16, ones that underflow it, ones that are subnormal, one sign alone.
    const EditTensors edit = [](std::vector<TensorSpec>& specs) {
      specs.at(0).source = [](std::int64_t at) {
        const auto wave = static_cast<float>(at * 37 % 19 - 9);
        switch (at / 96 % 5) {
          case 0: return 0.0F;
          case 1: return 1e6F * wave;
          case 2: return 1e-9F * wave;
          case 3: return 1e-6F * wave;
          default: return 0.5F + 0.01F * wave;
        }
      };
    };
    INFO(to_string(fields_of(shape)));
    check_same(make("cuda.gptq", fields_of(shape), edit), make("cpu.gptq", fields_of(shape), edit));
  }
}

TEST_CASE("cuda.gptq: tokens beyond those that are widened at once count too", "[weight_quantization][gpu]") {
  for (const std::int64_t tokens : {2047, 2048, 2049, 5000}) {
    const Shape shape{.n = 9, .k = 80, .group_size = 32, .tokens = tokens};
    INFO(to_string(fields_of(shape)));
    const Made gpu = make("cuda.gptq", fields_of(shape));
    INFO(gpu.run.check.reason);
    CHECK(gpu.run.check.passed);
    check_same(gpu, make("cpu.gptq", fields_of(shape)));
  }
}

TEST_CASE("cuda.gptq: inputs that are always 0 get weights of 0; without any other it rounds and says so",
          "[weight_quantization][gpu]") {
  for (const bool symmetric : {true, false}) {
    const Shape shape{.symmetric = symmetric};
    INFO(to_string(fields_of(shape)));
    const EditTensors some = with_activations(shape.k, [](std::int64_t token, std::int64_t input) {
      return input % 3 == 0 ? 0.0F : static_cast<float>((token * 7 + input * input) % 23 - 11);
    });
    const Made gpu = make("cuda.gptq", fields_of(shape), some);
    check_same(gpu, make("cpu.gptq", fields_of(shape), some));
    for (std::int64_t j = 0; j < shape.n; ++j)
      for (std::int64_t i = 0; i < shape.k; i += 3) REQUIRE(gpu.result.quantized.weights.weight(j, i) == 0);

    const EditTensors none = with_activations(shape.k, [](std::int64_t, std::int64_t) { return 0.0F; });
    const Made rounded = make("cuda.gptq", fields_of(shape), none);
    check_same(rounded, make("cpu.gptq", fields_of(shape), none));
    CHECK(rounded.result.warnings == 1);
    CHECK_FALSE(rounded.result.quantized.damping.has_value());
  }
}

TEST_CASE("cuda.gptq: damping is raised where H is not positive definite, and what cannot be factorised is refused",
          "[weight_quantization][gpu]") {
  const Shape singular{.n = 6, .k = 64, .group_size = 32, .tokens = 10, .damping = 0};
  const Made raised = make("cuda.gptq", fields_of(singular));
  check_same(raised, make("cpu.gptq", fields_of(singular)));
  CHECK(raised.result.warnings == 1);
  CHECK(raised.result.quantized.damping == 0.01);

  const EditTensors broken = with_activations(64, [](std::int64_t token, std::int64_t input) {
    return token == 3 && input == 5 ? std::numeric_limits<float>::quiet_NaN() : 1.0F;
  });
  CHECK_THROWS_WITH(run_variant("weight_quantization", "cuda.gptq", fields_of(singular), 1, broken),
                    contains_text("H is not positive definite, even with a damping of 1"));
}

TEST_CASE("cuda.gptq: a layer of many blocks and tiles passes the audit and is that of the CPU",
          "[weight_quantization][gpu]") {
  const Shape shape{.n = 300, .k = 1100, .tokens = 2200};
  const Made gpu = make("cuda.gptq", fields_of(shape));
  INFO(gpu.run.check.reason);
  CHECK(gpu.run.check.passed);
  check_same(gpu, make("cpu.gptq", fields_of(shape)));
}

}  // namespace
}  // namespace inferometer::test
