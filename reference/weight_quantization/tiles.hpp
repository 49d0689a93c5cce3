// Square matrices cut into tiles that threads share out. The cut depends on the size alone, and so do all sums.
#pragma once

#include <algorithm>
#include <cstdint>

#include "harness/operator/parallel.hpp"
#include "reference/common/eigen.hpp"

namespace inferometer {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Square = Eigen::Map<RowMajor>;
using ConstSquare = Eigen::Map<const RowMajor>;

inline constexpr std::int64_t kTileSize = 192;  // three tiles of doubles fill a second-level cache of 1 MiB

struct Tile {
  std::int64_t begin = 0;
  std::int64_t size = 0;
  std::int64_t end() const { return begin + size; }
};

inline std::int64_t tiles_of(std::int64_t k) { return (k + kTileSize - 1) / kTileSize; }

inline Tile tile(std::int64_t k, std::int64_t index) {
  return {.begin = index * kTileSize, .size = std::min(kTileSize, k - index * kTileSize)};
}

// body(i, j) for all 0 <= j <= i < tiles.
template <class Body>
void for_each_lower_tile(std::int64_t tiles, int threads, const Body& body) {
  parallel_for(tiles * (tiles + 1) / 2, threads, [&](std::int64_t place) {
    std::int64_t i = 0;
    while ((i + 1) * (i + 2) / 2 <= place) ++i;
    body(i, place - i * (i + 1) / 2);
  });
}

}  // namespace inferometer
