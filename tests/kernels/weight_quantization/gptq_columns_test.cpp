// How cuda.gptq cuts the columns of a layer into blocks.
#include "kernels/weight_quantization/gptq_columns.hpp"

#include <cstdint>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("cuda.gptq: a block of columns ends with a group, unless it lies within one", "[weight_quantization]") {
  for (const std::int64_t k : {1, 31, 64, 65, 200, 1000}) {
    for (const std::int64_t group_width : {1, 3, 32, 48, 63, 64, 65, 100, 128, 1000}) {
      for (std::int64_t begin = 0; begin < k;) {
        CAPTURE(k, group_width, begin);
        const std::int64_t width = gptq_block_width(k, group_width, begin);
        const std::int64_t end = begin + width;
        REQUIRE((width >= 1 && width <= kBlockColumns && end <= k));
        const bool ends_a_group = end == k || end % group_width == 0;
        const bool within_one = begin / group_width == (end - 1) / group_width;
        REQUIRE((ends_a_group || within_one));
        // No block is cut short without a reason: it is full, or the next whole group would not fit.
        REQUIRE((end == k || width == kBlockColumns || (ends_a_group && width + group_width > kBlockColumns)));
        begin = end;
      }
    }
  }
}
