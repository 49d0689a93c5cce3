// Headline metrics and descriptions are by name. That a row reports them is tested beside each operator's own tests,
// in tests/reference/<operator>/metric_docs_test.cpp; here, that none lacks that test.
#include <algorithm>
#include <filesystem>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("operators: every metric has a description, every headline metric is one of them", "[reference]") {
  for (const Operator* op : all_operators()) {
    INFO(op->name);
    for (const MetricInfo& info : op->metric_docs) {
      INFO(info.name);
      CHECK_FALSE(info.doc.empty());
    }
    for (const std::string& name : op->headline_metrics) {
      INFO(name);
      CHECK(std::any_of(op->metric_docs.begin(), op->metric_docs.end(),
                        [&name](const MetricInfo& info) { return info.name == name; }));
    }
  }
}

TEST_CASE("operators: every one with metrics tests that its rows report them", "[reference]") {
  const std::filesystem::path tests = INFEROMETER_SOURCE_DIR "/tests/reference";
  for (const Operator* op : all_operators()) {
    if (op->metric_docs.empty()) continue;
    INFO("tests/reference/" << op->name << "/metric_docs_test.cpp calls check_metric_docs of tests/support/");
    CHECK(std::filesystem::exists(tests / op->name / "metric_docs_test.cpp"));
  }
}
