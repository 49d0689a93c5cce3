// Products that take each tile of more than 128 tokens in every way, on a GPU with the limits of an H200: whole, with
// several tiles a block, and shared by two and by four blocks (weight_only_plan_test.cpp holds them to it). Rows of W
// and tokens end within tiles.
#pragma once

#include <array>
#include <cstdint>

namespace inferometer::test {

struct WideTileSize {
  std::int64_t m;
  std::int64_t n;
  std::int64_t k;
};

inline constexpr std::array kWideTileSizes = {
    WideTileSize{129, 8571, 520},  WideTileSize{143, 17001, 520},  WideTileSize{144, 5752, 4104},
    WideTileSize{129, 2935, 8200}, WideTileSize{191, 8571, 520},   WideTileSize{145, 17001, 520},
    WideTileSize{192, 6391, 8200}, WideTileSize{145, 2935, 8200},  WideTileSize{255, 8571, 520},
    WideTileSize{193, 17001, 520}, WideTileSize{256, 6392, 8200},  WideTileSize{193, 11385, 8200},
    WideTileSize{385, 8191, 1032}, WideTileSize{1025, 8191, 1032},
};

}  // namespace inferometer::test
