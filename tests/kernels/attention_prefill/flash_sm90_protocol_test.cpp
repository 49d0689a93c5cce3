// How the copying warps and the math warpgroups of flash_sm90 hand stages to each other, without a GPU.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/attention_prefill/flash_sm90_config.hpp"
#include "kernels/attention_prefill/flash_sm90_work.hpp"
#include "tests/kernels/attention_prefill/flash_sm90_interleaving.hpp"
#include "tests/kernels/attention_prefill/flash_sm90_steps.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

// Tiles of sequences and heads as a block may get them: short and long, with and without keys, masked or not.
template <class Shape>
std::vector<PrefillWork> random_tiles(std::mt19937& random) {
  std::vector<PrefillWork> works(1 + random() % 7);
  for (PrefillWork& work : works) {
    const int q_len = 1 + static_cast<int>(random() % 300);
    const int kv_len = static_cast<int>(random() % 160) - 10;
    const bool causal = random() % 4 != 0;
    const int window = causal && random() % 2 == 0 ? static_cast<int>(random() % 100) : -1;
    const int tiles = (q_len + Shape::kTileQ - 1) / Shape::kTileQ;
    work.valid = true;
    work.first_query = static_cast<int>(random() % static_cast<unsigned>(tiles)) * Shape::kTileQ;
    work.queries = std::min(Shape::kTileQ, q_len - work.first_query);
    work.keys = VisibleKeys(q_len, std::max(kv_len, 0), causal, window);
  }
  works.emplace_back();  // none is left
  return works;
}

// The first fault in so many sequences of tiles, each in three orders; "" when there is none.
template <class Shape>
std::string first_fault(int sequences, Mistake mistake) {
  std::mt19937 random(90);
  for (int i = 0; i < sequences; ++i) {
    const std::vector<PrefillWork> works = random_tiles<Shape>(random);
    std::vector<Steps> agents{QueryKeyWarp<Shape>(works, mistake).run(), ValueWarp<Shape>(works).run()};
    if (Shape::kTeams == 1) agents.push_back(find_tiles<Shape>(works));
    for (int w = 0; w < Shape::kWarpgroups; ++w) agents.push_back(MathWarpgroup<Shape>(works, w, mistake).run());
    for (int repeat = 0; repeat < 3; ++repeat)
      if (std::string fault = Interleaving<Shape>(agents).run(random); !fault.empty()) return fault;
  }
  return "";
}

// Blocks of 16 keys, so that warpgroups of 64 rows see up to 8 blocks that others do not.
using TwoWarpgroupsTwoStages = FlashSm90Shape<64, 64, 2, 16, 2>;
using TwoWarpgroupsOneStage = FlashSm90Shape<64, 64, 2, 16, 1>;
using ThreeWarpgroupsTwoStages = FlashSm90Shape<64, 64, 3, 16, 2>;
using ThreeWarpgroupsOneStage = FlashSm90Shape<64, 64, 3, 16, 1>;
// And blocks that outlast a warpgroup's rows, as in most shapes.
using LongBlocks = FlashSm90Shape<64, 64, 2, 128, 1>;
// Trusting blocks keep K, and at the end of a tile Q, until their P is known to be right.
using Trusting = FlashSm90Shape<64, 64, 2, 16, 2, FlashSm90Options{.trusting = true}>;
using TrustingOneStage = FlashSm90Shape<64, 64, 3, 16, 1, FlashSm90Options{.trusting = true}>;
using TrustingMoreKeys = FlashSm90Shape<64, 64, 2, 16, 2, FlashSm90Options{.trusting = true, .k_stages = 3}>;
using TrustingMoreOfBoth =
    FlashSm90Shape<64, 64, 2, 16, 1, FlashSm90Options{.trusting = true, .k_stages = 3, .v_stages = 3}>;
// As head_dim 256 has it, and 128 with tiles of 192 queries.
using TrustingMoreKeysOneStage = FlashSm90Shape<64, 64, 2, 16, 1, FlashSm90Options{.trusting = true, .k_stages = 3}>;
using TrustingThreeWarpgroups =
    FlashSm90Shape<64, 64, 3, 16, 2, FlashSm90Options{.trusting = true, .k_stages = 3, .v_stages = 3}>;
// Two teams share no stage and no turn: each is as one alone.
using TrustingTeam =
    FlashSm90Shape<64, 64, 2, 16, 2, FlashSm90Options{.trusting = true, .teams = 2, .k_stages = 4, .v_stages = 4}>;

TEST_CASE("flash_sm90: warps hand over stages without deadlock, and none reads what it does not expect",
          "[attention][prefill][flash_sm90]") {
  CHECK(first_fault<TwoWarpgroupsTwoStages>(300, Mistake::none).empty());
  CHECK(first_fault<TwoWarpgroupsOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<ThreeWarpgroupsTwoStages>(300, Mistake::none).empty());
  CHECK(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<LongBlocks>(300, Mistake::none).empty());
  CHECK(first_fault<Trusting>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingMoreKeys>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingMoreOfBoth>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingMoreKeysOneStage>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingThreeWarpgroups>(300, Mistake::none).empty());
  CHECK(first_fault<TrustingTeam>(300, Mistake::none).empty());
}

TEST_CASE("flash_sm90: the model of its warps finds stages released too soon, and a deadlock",
          "[attention][prefill][flash_sm90]") {
  CHECK_FALSE(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::queries_released_unseen).empty());
  CHECK(first_fault<TrustingOneStage>(300, Mistake::queries_before_keys) == "deadlock");
  CHECK_FALSE(first_fault<Trusting>(300, Mistake::keys_released_unchecked).empty());
  CHECK_FALSE(first_fault<TrustingMoreOfBoth>(300, Mistake::keys_released_unchecked).empty());
  CHECK_FALSE(first_fault<TrustingThreeWarpgroups>(300, Mistake::keys_released_unchecked).empty());
  CHECK(first_fault<ThreeWarpgroupsOneStage>(300, Mistake::two_blocks_skipped_within_a_stream) == "deadlock");
}

}  // namespace
}  // namespace inferometer::test
