#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("generation: a row reports the metrics that are described", "[generation][reference]") {
  test::check_metric_docs("generation", "cpu.cached", {{"new_tokens", std::int64_t{12}}});
}
