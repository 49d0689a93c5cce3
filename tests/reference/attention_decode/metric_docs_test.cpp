#include "tests/support/metric_docs.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("attention_decode: a row reports the metrics that are described", "[attention_decode][reference]") {
  test::check_metric_docs("attention_decode", "cpu.naive",
                          {{"context", std::int64_t{16}}, {"kv_bits", std::int64_t{8}}});
}
