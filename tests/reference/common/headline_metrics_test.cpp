// Headline metrics and descriptions are by name: these rows hold them against what the operators report.
#include <algorithm>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

using namespace inferometer;

namespace {

struct Example {
  const char* operator_name;
  const char* variant;
  Fields problem;
  std::vector<std::string> on_gpu_only = {};  // metrics
};

std::vector<Metric> metrics_of(const Operator& op, const Example& example) {
  const auto problem = op.parse(example.problem);
  const std::vector<TensorSpec> specs = op.tensors(problem.get());
  const test::VariantRun run = test::run_variant(op.name, example.variant, example.problem);
  std::vector<const void*> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs)
    tensors.push_back(spec.role == Role::output ? run.raw.at(spec.name).data() : nullptr);
  return op.metrics(problem.get(), Inputs(specs, 1), tensors, 2);
}

bool has(const auto& metrics, const std::string& name) {
  return std::any_of(metrics.begin(), metrics.end(), [&](const auto& metric) { return metric.name == name; });
}

}  // namespace

TEST_CASE("operators: headline metrics and descriptions are of metrics that a row reports", "[reference]") {
  const std::vector<Example> examples = {
      {"kv_memory", "cpu.reserve_max", {{"requests", std::int64_t{100}}}},
      {"attention_decode", "cpu.naive", {{"context", std::int64_t{16}}, {"kv_bits", std::int64_t{8}}}},
      {"kv_append", "cpu.naive", {{"kv_bits", std::int64_t{8}}}},
      {"matmul", "cpu.dequantize", {{"k", std::int64_t{64}}, {"bits", std::int64_t{4}}}},
      {"generation", "cpu.cached", {{"new_tokens", std::int64_t{12}}}},
      {"serving", "cpu.simulated_continuous", {{"requests", std::int64_t{20}}}, {"cost_model_rel_error"}},
      {"weight_quantization", "cpu.gptq", {{"n", std::int64_t{8}}, {"k", std::int64_t{64}}}}};
  for (const Operator* op : all_operators()) {
    if (op->headline_metrics.empty()) continue;
    INFO(op->name);
    const auto example = std::find_if(examples.begin(), examples.end(),
                                      [&](const Example& candidate) { return candidate.operator_name == op->name; });
    REQUIRE(example != examples.end());
    const std::vector<Metric> metrics = metrics_of(*op, *example);
    for (const std::string& name : op->headline_metrics) {
      INFO(name);
      CHECK(has(metrics, name));
    }
    CHECK(metrics.size() + example->on_gpu_only.size() == op->metric_docs.size());
    for (const MetricInfo& info : op->metric_docs) {
      INFO(info.name);
      const auto& elsewhere = example->on_gpu_only;
      const bool expected = std::find(elsewhere.begin(), elsewhere.end(), info.name) == elsewhere.end();
      CHECK(has(metrics, info.name) == expected);
      CHECK_FALSE(info.doc.empty());
    }
  }
}
