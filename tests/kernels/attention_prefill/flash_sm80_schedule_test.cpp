#include "kernels/attention_prefill/flash_sm80_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kHalfL2 = 30 << 20;  // of an H200

TileSchedule causal(std::int64_t heads, std::int64_t heads_per_kv, std::int64_t length, std::int64_t dim) {
  return flash_sm80_schedule(true, heads, (length + 127) / 128, heads_per_kv, length * dim * 4, kHalfL2);
}

TEST_CASE("flash_sm80: causal heads are in groups alike, each at least what the cache holds; full as many as it holds",
          "[attention][prefill][schedule]") {
  CHECK(causal(64, 1, 4096, 192).group_heads == 11);  // 10 fit
  CHECK(causal(64, 1, 4096, 192).merged);
  CHECK(causal(16, 1, 4096, 192).group_heads == 16);
  CHECK(causal(64, 4, 4096, 192).group_heads == 64);  // 16 KV heads
  CHECK(causal(128, 4, 4096, 192).group_heads == 44);
  CHECK(causal(3, 1, 1 << 20, 256).group_heads == 1);
  const TileSchedule full = flash_sm80_schedule(false, 64, 32, 1, 4096 * 192 * 4, kHalfL2);
  CHECK(full.group_heads == 10);
  CHECK_FALSE(full.merged);
}

// Time of the last of 132 x 2 places to work, over the mean, when each takes the next tile once it is free. A tile
// takes as long as the keys its queries see, and 48 more.
double longest_over_mean(const TileSchedule& schedule, std::int64_t length) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  for (int place = 0; place < 264; ++place) free_at.push(0);
  std::int64_t sum = 0;
  std::int64_t last = 0;
  for (int block = 0; block < schedule.blocks(); ++block) {
    const std::int64_t cost = std::min<std::int64_t>(length, (schedule.tile(block).index + 1) * 128) + 48;
    const std::int64_t end = free_at.top() + cost;
    free_at.pop();
    free_at.push(end);
    last = std::max(last, end);
    sum += cost;
  }
  return static_cast<double>(last) * 264 / static_cast<double>(sum);
}

TEST_CASE("flash_sm80: causal tiles of many heads leave places idle for less than 5 % of the time",
          "[attention][prefill][schedule]") {
  for (const std::int64_t dim : {64, 96, 128, 192})
    for (const std::int64_t length : {512, 1024, 2048, 4096, 8192, 16384}) {
      const std::int64_t heads = 16384 / length * (dim < 128 ? 32 : 16);
      CAPTURE(dim, length);
      CHECK(longest_over_mean(causal(heads, 1, length, dim), length) < 1.05);
    }
}

}  // namespace
}  // namespace inferometer
