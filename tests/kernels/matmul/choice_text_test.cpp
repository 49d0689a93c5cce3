// What variants of matmul say of their choices.
#include "kernels/matmul/choice_text.hpp"

#include "kernels/matmul/sm90_tile_table.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

TEST_CASE("matmul choice: an algorithm of cuBLASLt by its numbers, proposals counted from one", "[matmul][choice]") {
  CHECK(choice_text(CublasLtChoice{.proposal = 2,
                                   .proposals = 8,
                                   .algorithm = 66,
                                   .tile = 23,
                                   .stages = 36,
                                   .cluster_shape = 3,
                                   .split_k = 4,
                                   .workspace_bytes = 1048576}) ==
        "proposal 3 of 8 timed: algorithm 66, tile id 23, stages id 36, cluster shape id 3, split-k 4, workspace "
        "1048576 bytes");
}

TEST_CASE("matmul choice: a plan's tile counts tokens first, whichever operand they are", "[matmul][choice]") {
  REQUIRE(kSm90Tiles[0].tile.weights_are_a);
  REQUIRE(kSm90Tiles[0].tile.tile_b == 16);
  Sm90Plan plan{.tile = 0, .work = {}, .blocks = 256};
  plan.work.split = 4;
  CHECK(choice_text(plan) == "tile of 16 tokens by 128 features, 6 stages, split-k 4, 256 blocks");
  for (std::size_t i = 0; i < kSm90Tiles.size(); ++i) {
    const Sm90Tile& tile = kSm90Tiles[i].tile;
    const int tokens = tile.weights_are_a ? tile.tile_b : tile.tile_a();
    const std::string text = choice_text(Sm90Plan{.tile = static_cast<int>(i), .work = {}, .blocks = 132});
    INFO(text);
    CHECK(text.starts_with("tile of " + std::to_string(tokens) + " tokens by "));
    CHECK(text.ends_with(tile.pairs ? " blocks in pairs" : " blocks"));
  }
}

}  // namespace
}  // namespace inferometer::test
