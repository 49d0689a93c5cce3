#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("matmul: a row reports the metrics that are described", "[matmul][reference]") {
  test::check_metric_docs("matmul", "cpu.dequantize", {{"k", std::int64_t{64}}, {"bits", std::int64_t{4}}});
}
