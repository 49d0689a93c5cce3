// How cuda.w4a16 and cuda.w8a16 share out a problem.
#include "kernels/matmul/weight_only_plan.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>

#include "kernels/matmul/weight_only_few_tokens_shape.hpp"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "reference/decoder/problem.hpp"
#include "tests/kernels/matmul/wide_tile_sizes.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr GpuLimits kH200{.sm_count = 132, .block_smem_bytes = 232448, .clusters = true};

PackedShape weights(std::int64_t n, std::int64_t k, int bits = 4) {
  return {.n = n, .k = k, .bits = bits, .group_size = 128, .symmetric = true};
}

TEST_CASE("weight-only plan: every row and token is in some block's work, within what a block may have", "[matmul]") {
  for (const std::int64_t m : {1, 8, 9, 16, 17, 32, 33, 64, 65, 129, 257, 4096}) {
    for (const std::int64_t n : {1, 8, 1441, 4096, 14336}) {
      for (const std::int64_t k : {8, 4104, 29568}) {
        for (const int bits : {4, 8}) {
          const WeightOnlyPlan plan = make_weight_only_plan(weights(n, k, bits), m, kH200);
          INFO("m=" << m << " n=" << n << " k=" << k << " bits=" << bits);
          CHECK(plan.smem_bytes <= static_cast<int>(kH200.block_smem_bytes));
          CHECK(plan.blocks % plan.parts == 0);
          if (plan.few_tokens) {
            CHECK(m <= kMostFewTokens);
            CHECK(plan.tokens >= m);
            CHECK(plan.stages > 0);
            CHECK(plan.blocks / plan.parts * plan.tiles * kTileRows >= n);
          } else {
            const WeightOnlyTile& tile = kWeightOnlyTiles.at(static_cast<std::size_t>(plan.shape));
            CHECK(std::int64_t{plan.tiles} * tile.bands * kBandRows >= n);
            CHECK(std::int64_t{plan.token_tiles} * tile.tokens >= m);
            CHECK(plan.parts <= WeightOnlyWgmmaShape::kMaxParts);
            CHECK(plan.threads == WeightOnlyWgmmaShape{bits, tile.tokens, tile.bands}.threads());
            if (plan.parts > 1) CHECK(plan.blocks == std::int64_t{plan.tiles} * plan.token_tiles * plan.parts);
          }
        }
      }
    }
  }
}

TEST_CASE("weight-only plan: decode keeps nearly every SM busy, each with one block", "[matmul]") {
  for (const std::int64_t n : {4096, 8192, 14336}) {
    for (const std::int64_t m : {1, 8, 16}) {
      const WeightOnlyPlan plan = make_weight_only_plan(weights(n, 4096), m, kH200);
      INFO("n=" << n << " m=" << m);
      CHECK(plan.blocks >= kH200.sm_count * 9 / 10);
      CHECK(plan.blocks <= kH200.sm_count);
    }
  }
}

// The kernel for few tokens alone ends products in residuals, and only where all of a layer's do are norms late.
TEST_CASE("weight-only plan: up to how many tokens a decoder's layers take the kernel for few tokens", "[matmul]") {
  const auto most_tokens = [](const char* model, int bits) {
    const DecoderShape& s = decoder_shape(model);
    std::int64_t m = 0;
    while (make_weight_only_plan(weights(s.hidden, s.q_size(), bits), m + 1, kH200).few_tokens &&
           make_weight_only_plan(weights(2 * s.intermediate, s.hidden, bits), m + 1, kH200).few_tokens &&
           make_weight_only_plan(weights(s.hidden, s.intermediate, bits), m + 1, kH200).few_tokens)
      ++m;
    return m;
  };
  for (const char* const model : {"tinyllama", "llama2_7b", "llama3_8b", "llama3_70b", "qwen25_7b", "qwen3_8b"}) {
    INFO(model);
    CHECK(most_tokens(model, 4) == 16);
  }
  CHECK(most_tokens("llama3_8b", 8) == 8);
  CHECK(most_tokens("llama2_7b", 8) == 0);  // down, [4096, 11008]
  CHECK(most_tokens("qwen25_7b", 8) == 0);  // down, [3584, 18944]
}

TEST_CASE("weight-only plan: large products take the largest tile, whole", "[matmul]") {
  for (const std::int64_t size : {4096, 8192}) {
    const WeightOnlyPlan plan = make_weight_only_plan(weights(size, size), size, kH200);
    const WeightOnlyTile& tile = kWeightOnlyTiles.at(static_cast<std::size_t>(plan.shape));
    CHECK(tile.tokens == 256);
    CHECK(tile.bands == 2);
    CHECK(plan.parts == 1);
  }
}

TEST_CASE("weight-only plan: 256 tokens take the tile that was measured fastest", "[matmul]") {
  const auto tile_of = [](const WeightOnlyPlan& plan) {
    return kWeightOnlyTiles.at(static_cast<std::size_t>(plan.shape)).tokens;
  };
  const WeightOnlyPlan shared = make_weight_only_plan(weights(8192, 8192), 256, kH200);
  CHECK(tile_of(shared) == 256);
  CHECK(shared.parts == 2);
  const WeightOnlyPlan whole = make_weight_only_plan(weights(14336, 4096), 256, kH200);
  CHECK(tile_of(whole) == 256);
  CHECK(whole.parts == 1);
  CHECK(tile_of(make_weight_only_plan(weights(4096, 4096), 256, kH200)) == 128);  // 25 us with tiles of 256, not 17
}

TEST_CASE("weight-only plan: the sizes of wide_tile_sizes.hpp take every wide tile in every way", "[matmul]") {
  std::set<std::pair<int, int>> parts_of_tokens;
  std::set<int> several_a_block;
  for (const WideTileSize& size : kWideTileSizes) {
    for (const int bits : {4, 8}) {
      const WeightOnlyPlan plan = make_weight_only_plan(weights(size.n, size.k, bits), size.m, kH200);
      const int tokens = kWeightOnlyTiles.at(static_cast<std::size_t>(plan.shape)).tokens;
      parts_of_tokens.emplace(tokens, plan.parts);
      if (plan.parts == 1 && plan.blocks < std::int64_t{plan.tiles} * plan.token_tiles) several_a_block.insert(tokens);
    }
  }
  for (const WeightOnlyTile& tile : kWeightOnlyTiles) {
    if (tile.tokens <= 128) continue;
    INFO("tokens=" << tile.tokens);
    for (int parts = 1; parts <= WeightOnlyWgmmaShape::kMaxParts; parts *= 2)
      CHECK(parts_of_tokens.count({tile.tokens, parts}) == 1);
    CHECK(several_a_block.count(tile.tokens) == 1);
  }
}

TEST_CASE("weight-only plan: one token more is never predicted to cost 30 % more, up to 512", "[matmul]") {
  for (const auto& [n, k] :
       {std::pair(4096, 4096), std::pair(14336, 4096), std::pair(4096, 14336), std::pair(8192, 8192)}) {
    for (std::int64_t m = 1; m < 512; ++m) {
      const double before = make_weight_only_plan(weights(n, k), m, kH200).predicted_ns;
      const double after = make_weight_only_plan(weights(n, k), m + 1, kH200).predicted_ns;
      INFO("n=" << n << " k=" << k << " m=" << m);
      CHECK(after <= 1.3 * before);
    }
  }
}

TEST_CASE("weight-only shapes: a stage is always filled by the same warp, and parts fit in its place", "[matmul]") {
  for (const WeightOnlyTile& tile : kWeightOnlyTiles) {
    for (const int bits : {4, 8}) {
      const WeightOnlyWgmmaShape shape = {.bits = bits, .tokens = tile.tokens, .bands = tile.bands};
      INFO("bits=" << bits << " tokens=" << tile.tokens << " bands=" << tile.bands);
      CHECK(shape.stages() >= WeightOnlyWgmmaShape::kCopyWarps);
      CHECK(shape.stages() % WeightOnlyWgmmaShape::kCopyWarps == 0);
      CHECK(shape.stages() % shape.ways() == 0);
      // Registers that warpgroups take are those that the copying warps give back.
      const int at_start = 65536 / shape.threads() / 8 * 8;
      CHECK(shape.consumers() * 128 * shape.multiply_registers() + 128 * shape.copy_registers() <=
            shape.threads() * at_start);
      CHECK(shape.stage_bytes() % 1024 == 0);
      CHECK(shape.exchange_bytes() <= shape.staged_at());
    }
  }
}

}  // namespace
}  // namespace inferometer::test
