#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("serving: a row reports the metrics that are described", "[serving][reference]") {
  test::check_metric_docs("serving", "cpu.simulated_continuous", {{"requests", std::int64_t{20}}},
                          {"cost_model_rel_error"});
}
