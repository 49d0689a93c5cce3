#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("kv_append: a row reports the metrics that are described", "[kv_append][reference]") {
  test::check_metric_docs("kv_append", "cpu.naive", {{"kv_bits", std::int64_t{8}}});
}
