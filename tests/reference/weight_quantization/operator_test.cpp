// The operator around the quantisers: layers, fields it refuses, and a judge that finds results that are not right.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/weight_quantization/layer_source.hpp"
#include "reference/weight_quantization/result_audit.hpp"
#include "reference/weight_quantization/result_tensor.hpp"
#include "reference/weight_quantization/rounding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;

namespace {

using Problem = WeightQuantizationProblem;
using Elements = std::vector<std::int32_t>;

const Operator& op() { return *find_operator("weight_quantization"); }

Fields fields(std::int64_t bits, std::int64_t group_size, bool symmetric, const std::string& source = "synthetic") {
  return {{"n", std::int64_t{24}},
          {"k", std::int64_t{160}},
          {"calibration_tokens", std::int64_t{400}},
          {"bits", bits},
          {"group_size", group_size},
          {"symmetric", symmetric},
          {"held_out_tokens", std::int64_t{100}},
          {"source", source}};
}

Problem parse(const Fields& given) { return *static_cast<const Problem*>(op().parse(given).get()); }

Elements result_of(const std::string& variant, const Fields& given) {
  const test::VariantRun run = test::run_variant("weight_quantization", variant, given);
  REQUIRE(run.check.reason.empty());
  const std::vector<std::byte>& raw = run.raw.at("result");
  const auto* first = reinterpret_cast<const std::int32_t*>(raw.data());
  return {first, first + raw.size() / sizeof(std::int32_t)};
}

std::map<std::string, double> metrics_of(const Problem& p, const Elements& elements) {
  std::map<std::string, double> metrics;
  for (const Metric& metric : result_metrics(p, elements, 2)) metrics[metric.name] = metric.value;
  return metrics;
}

std::string refused(const Fields& given) {
  try {
    op().parse(given);
  } catch (const ProblemError& error) {
    return error.what();
  }
  return "accepted";
}

// A result with something changed, back as a tensor.
template <class Change>
Elements changed(const Problem& p, const Elements& elements, const Change& change) {
  MethodResult result = read_result(p, elements);
  change(result.quantized);
  Elements written(elements.size());
  write_result(p, result, written);
  return written;
}

}  // namespace

TEST_CASE("weight_quantization: every method passes its audit at every bit width", "[weight_quantization][operator]") {
  for (const Variant* variant : variants_of("weight_quantization")) {
    if (variant->on_gpu()) continue;
    for (const std::int64_t bits : {8, 4, 3}) {
      for (const std::int64_t group_size : {32, 128, 0}) {
        for (const bool symmetric : {true, false}) {
          CAPTURE(variant->name, bits, group_size, symmetric);
          const Fields given = fields(bits, group_size, symmetric);
          const Problem p = parse(given);
          const Elements elements = result_of(variant->name, given);
          CHECK(audit_result(p, variant->name, elements).empty());
          const std::map<std::string, double> metrics = metrics_of(p, elements);
          CHECK(metrics.at("output_rel_error") > 0);
          CHECK(metrics.at("output_rel_error") < (bits == 8 ? 0.02 : bits == 4 ? 0.25 : 0.6));
          CHECK(metrics.at("warnings") == 0);
        }
      }
    }
  }
}

TEST_CASE("weight_quantization: with correlation GPTQ and AWQ beat rounding on tokens they have not seen",
          "[weight_quantization][operator]") {
  for (const std::int64_t bits : {4, 3}) {
    const Fields given = fields(bits, 32, true);
    const auto error = [&](const std::string& variant) {
      return metrics_of(parse(given), result_of(variant, given)).at("output_rel_error");
    };
    const double rounded = error("cpu.rtn");
    CAPTURE(bits, rounded);
    CHECK(error("cpu.gptq") < 0.8 * rounded);
    CHECK(error("cpu.gptq_group_order") < 0.8 * rounded);
    CHECK(error("cpu.gptq_act_order") < 0.8 * rounded);
    CHECK(error("cpu.awq") < 0.95 * rounded);
  }
}

TEST_CASE("weight_quantization: without correlation GPTQ is rounding", "[weight_quantization][operator]") {
  for (const std::int64_t bits : {8, 4, 3}) {
    for (const bool symmetric : {true, false}) {
      CAPTURE(bits, symmetric);
      const Fields given = fields(bits, 32, symmetric, "synthetic_uncorrelated");
      const Problem p = parse(given);
      const QuantizedWeights rounded = read_result(p, result_of("cpu.rtn", given)).quantized.weights;
      for (const std::string variant : {"cpu.gptq", "cpu.gptq_group_order"}) {
        const QuantizedWeights made = read_result(p, result_of(variant, given)).quantized.weights;
        CHECK(made.codes == rounded.codes);
        CHECK(made.scales == rounded.scales);
        CHECK(made.zeros == rounded.zeros);
      }
    }
  }
}

TEST_CASE("weight_quantization: results that are not right are found", "[weight_quantization][operator]") {
  const Fields given = fields(4, 32, false);
  const Problem p = parse(given);
  std::map<std::string, Elements> results;
  for (const char* variant : {"cpu.rtn", "cpu.rtn_search", "cpu.gptq", "cpu.gptq_act_order", "cpu.awq"})
    results[variant] = result_of(variant, given);
  const auto says = [&](const std::string& variant, const Elements& elements, const std::string& sentence) {
    CAPTURE(variant);
    CHECK_THAT(audit_result(p, variant, elements), test::contains_text(sentence));
  };
  for (const auto& [variant, elements] : results) {
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.codes[500] = 16; }), "codes[3][20] is 16");
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.zeros[7] = 16; }), "zeros[1][2] is 16");
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.scales[7] = 0x7c00; }),
         "scales[1][2] is inf");
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.input_scales.assign(160, -1.0F); }),
         "an input scale is -1");
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.group_index.assign(160, 1); }),
         "group 0 has 0 inputs");
    says(variant, changed(p, elements, [](QuantizerResult& r) { r.weights.group_index.assign(160, 5); }),
         "input 0 is in group 5 of 5");
    says(variant, Elements(elements.size(), 0), "another shape");
  }
  const auto move_code = [](QuantizerResult& r) {
    r.weights.codes[500] = static_cast<std::int16_t>(r.weights.codes[500] ^ 1);
  };
  says("cpu.rtn", changed(p, results["cpu.rtn"], move_code), "codes[3][20] is worth");
  for (const char* variant : {"cpu.gptq", "cpu.gptq_act_order", "cpu.awq"}) {
    says(variant, changed(p, results[variant], move_code), "the objective is stated as");
    says(variant, changed(p, results[variant], [](QuantizerResult& r) { *r.objective *= 1.001; }),
         "the objective is stated as");
    says(variant, changed(p, results[variant], [](QuantizerResult& r) { r.objective.reset(); }), "no objective");
  }
  // What is right by itself, under another method's name.
  says("cpu.rtn", results["cpu.gptq"], "is worth");
  says("cpu.rtn_search", results["cpu.gptq"], "has a squared error of");
  says("cpu.gptq", changed(p, results["cpu.awq"], [](QuantizerResult& r) { r.damping = 0.01; }),
       "by Optimal Brain Quantization");
}

TEST_CASE("weight_quantization: AWQ must not be worse than rounding, GPTQ not other than it without correlation",
          "[weight_quantization][operator]") {
  const Fields given = fields(4, 32, true, "synthetic_uncorrelated");
  const Problem p = parse(given);
  const OwnedMatrix w = layer_weights(p, 2);
  const Calibration c = calibrate(calibration_activations(p, 2).view(), 2);
  QuantizedWeights worse = quantize_rounding(w.view(), {.group_size = 32}, 2).weights;
  for (std::int16_t& code : worse.codes) code = static_cast<std::int16_t>(code < 7 ? code + 1 : code);
  double objective = 0;
  for (std::int64_t j = 0; j < p.n; ++j)  // H is diagonal here
    for (std::int64_t i = 0; i < p.k; ++i) {
      const double error = worse.weight(j, i) - static_cast<double>(w.view().row(j)[static_cast<std::size_t>(i)]);
      objective += error * error * c.hessian[static_cast<std::size_t>(i * p.k + i)];
    }
  Elements elements(static_cast<std::size_t>(result_elements(p)));
  write_result(p, {.quantized = {.weights = worse, .objective = objective, .damping = 0.01}}, elements);
  CHECK_THAT(audit_result(p, "cpu.awq", elements), test::contains_text("that of rounding"));
  CHECK_THAT(audit_result(p, "cpu.gptq", elements), test::contains_text("rounded to nearest"));
}

TEST_CASE("weight_quantization: a result comes back from its tensor", "[weight_quantization][operator]") {
  for (const bool symmetric : {true, false}) {
    const Problem p = parse(fields(8, 64, symmetric));
    MethodResult result{
        .quantized = {.weights = quantize_rounding(layer_weights(p, 1).view(),
                                                   {.format = {.bits = 8, .symmetric = symmetric}, .group_size = 64}, 1)
                                     .weights,
                      .objective = 1.0 / 3,
                      .seconds = 1e-9},
        .calibration_seconds = 12345.678};
    QuantizedWeights& q = result.quantized.weights;
    q.warnings = {"one", "two"};
    for (std::int64_t i = 0; i < p.k; ++i) {
      q.group_index.push_back(static_cast<std::int32_t>((i + 1) % 3));
      q.input_scales.push_back(0.5F + static_cast<float>(i));
    }
    Elements elements(static_cast<std::size_t>(result_elements(p)), -1);
    write_result(p, result, elements);
    CHECK(std::all_of(elements.begin(), elements.end(), [](std::int32_t e) { return e >= 0; }));
    const MethodResult read = read_result(p, elements);
    CHECK(read.quantized.weights.codes == q.codes);
    CHECK(read.quantized.weights.scales == q.scales);
    CHECK(read.quantized.weights.zeros == q.zeros);
    CHECK(read.quantized.weights.group_index == q.group_index);
    CHECK(read.quantized.weights.input_scales == q.input_scales);
    CHECK(read.quantized.objective == result.quantized.objective);
    CHECK_FALSE(read.quantized.damping.has_value());
    CHECK(read.quantized.seconds == 1e-9);
    CHECK(read.calibration_seconds == 12345.678);
    CHECK(read.warnings == 2);
    elements.pop_back();
    CHECK_THROWS_AS(read_result(p, elements), std::invalid_argument);
    CHECK_THROWS_AS(write_result(p, result, elements), std::invalid_argument);
  }
}

TEST_CASE("weight_quantization: synthetic activations have the correlation and the outliers that they are said to have",
          "[weight_quantization][operator]") {
  Problem p;
  p.k = 640;
  p.calibration_tokens = 4000;
  for (const double correlation : {0.0, 0.8}) {
    p.correlation = correlation;
    const Calibration c = calibrate(calibration_activations(p, 2).view(), 2);
    std::int64_t outliers = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < p.k; ++i) {
      const auto at = [&](std::int64_t row, std::int64_t column) {
        return c.hessian[static_cast<std::size_t>(row * p.k + column)];
      };
      if (at(i, i) > 25) ++outliers;  // variances lie around 1, or 100
      const std::int64_t j = (i + 1) % p.k;
      squares += at(i, j) * at(i, j) / (at(i, i) * at(j, j));
    }
    CHECK((outliers >= 2 && outliers <= 20));  // 10 of 640 on average
    // Squared correlation of two inputs that share 16 factors: correlation^2 / 16 on average, 1 / tokens without.
    CHECK(squares / static_cast<double>(p.k) == Approx(correlation * correlation / 16).margin(0.01));
  }
}

TEST_CASE("weight_quantization: held-out tokens come after those of calibration, and each has its own numbers",
          "[weight_quantization][operator]") {
  Problem p = parse(fields(4, 32, true));
  const OwnedMatrix held_out = held_out_activations(p, 2);
  const OwnedMatrix seen = calibration_activations(p, 1);
  CHECK(held_out.rows == 100);
  p.calibration_tokens = 500;
  const OwnedMatrix all = calibration_activations(p, 2);
  CHECK(std::equal(seen.values.begin(), seen.values.end(), all.values.begin()));
  CHECK(std::equal(held_out.values.begin(), held_out.values.end(), all.values.begin() + 400 * 160));
  p.layer_seed = 2;
  CHECK(calibration_activations(p, 2).values != all.values);
  CHECK(layer_weights(p, 1).values != layer_weights(parse(fields(4, 32, true)), 1).values);
}

TEST_CASE("weight_quantization: impossible problems are refused by field", "[weight_quantization][operator]") {
  CHECK(refused(fields(4, 128, true)) == "accepted");
  CHECK_THAT(refused(fields(9, 128, true)), test::contains_text("bits"));
  CHECK_THAT(refused(fields(4, -1, true)), test::contains_text("group_size"));
  CHECK_THAT(refused(fields(4, 128, true, "a_model")),
             test::contains_text("source must be a .safetensors file, a model's folder, or one of synthetic"));
  Fields few = fields(4, 128, true, "synthetic_uncorrelated");
  for (auto& [name, value] : few)
    if (name == "calibration_tokens") value = std::int64_t{159};
  CHECK(refused(few) ==
        "calibration_tokens must be at least k (160) without correlation, for each token has one input, got 159");
  CHECK_THAT(refused({{"scale_dtype", std::string("f32")}}), test::contains_text("scale_dtype"));
  CHECK_THAT(refused({{"damping", 1.5}}), test::contains_text("damping"));
}
