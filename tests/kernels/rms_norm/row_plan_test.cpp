// Which threads hold a row, for every width that the kernel takes.
#include "kernels/rms_norm/row_plan.hpp"

#include <bit>

#include "tests/support/catch.hpp"

using namespace inferometer::rms_norm;

TEST_CASE("rms_norm rows: every width has a thread for every vector, in rows that shuffles can sum", "[rms_norm]") {
  for (std::int64_t hidden = kVecElems; hidden <= kMostHidden; hidden += kVecElems) {
    CAPTURE(hidden);
    const RowPlan plan = plan_rows(hidden);
    const std::int64_t vecs = hidden / kVecElems;
    const auto vecs_of = [](std::int64_t threads) { return threads * kThreadVecs; };
    REQUIRE(vecs_of(plan.row_threads) >= vecs);
    REQUIRE(plan.row_threads * plan.block_rows <= kMostThreads);
    if (plan.row_threads <= 32) {
      REQUIRE(std::has_single_bit(static_cast<unsigned>(plan.row_threads)));
      REQUIRE(plan.row_threads * plan.block_rows % 32 == 0);  // whole warps vote and shuffle
    } else {
      REQUIRE(plan.row_threads % 32 == 0);
      REQUIRE(plan.block_rows == 1);
    }
    // No warp of a row is idle, nor are half of the threads of a row within a warp.
    REQUIRE(vecs_of(plan.row_threads - 32) < vecs);
    if (plan.row_threads <= 32 && plan.row_threads > 1) REQUIRE(vecs_of(plan.row_threads / 2) < vecs);
  }
}

TEST_CASE("rms_norm rows: heads share a warp, narrow rows a block, wide ones have a block each", "[rms_norm]") {
  CHECK(plan_rows(8).row_threads == 1);
  CHECK(plan_rows(8).block_rows == 256);
  CHECK(plan_rows(128).row_threads == 8);
  CHECK(plan_rows(128).block_rows == 32);
  CHECK(plan_rows(512).row_threads == 32);
  CHECK(plan_rows(512).block_rows == 8);
  CHECK(plan_rows(520).row_threads == 64);
  CHECK(plan_rows(520).block_rows == 1);
  CHECK(plan_rows(896).row_threads == 64);
  CHECK(plan_rows(4096).row_threads == 256);
  CHECK(plan_rows(5120).row_threads == 320);
  CHECK(plan_rows(16384).row_threads == 1024);
}
