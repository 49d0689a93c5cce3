#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("kv_memory: a row reports the metrics that are described", "[kv_memory][reference]") {
  test::check_metric_docs("kv_memory", "cpu.reserve_max", {{"requests", std::int64_t{100}}});
}
