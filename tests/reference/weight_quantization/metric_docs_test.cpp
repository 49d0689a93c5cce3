#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("weight_quantization: a row reports the metrics that are described", "[weight_quantization][reference]") {
  test::check_metric_docs("weight_quantization", "cpu.gptq", {{"n", std::int64_t{8}}, {"k", std::int64_t{64}}});
}
