#include "tests/support/metric_docs.hpp"

#include <set>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

void check_metric_docs(const std::string& operator_name, const std::string& variant, const Fields& problem,
                       const std::vector<std::string>& on_gpu_only) {
  const Operator* const op = find_operator(operator_name);
  REQUIRE(op != nullptr);
  const auto parsed = op->parse(problem);
  const std::vector<TensorSpec> specs = op->tensors(parsed.get());
  const VariantRun run = run_variant(operator_name, variant, problem);
  REQUIRE(run.unsupported.empty());
  std::vector<const void*> tensors;
  tensors.reserve(specs.size());
  for (const TensorSpec& spec : specs)
    tensors.push_back(spec.role == Role::output ? run.raw.at(spec.name).data() : nullptr);

  std::set<std::string> reported(on_gpu_only.begin(), on_gpu_only.end());
  for (const Metric& metric : op->metrics(parsed.get(), Inputs(specs, 1), tensors, 2)) {
    INFO(metric.name);
    CHECK(reported.insert(metric.name).second);
  }
  std::set<std::string> described;
  for (const MetricInfo& info : op->metric_docs) described.insert(info.name);
  CHECK(reported == described);
}

}  // namespace inferometer::test
