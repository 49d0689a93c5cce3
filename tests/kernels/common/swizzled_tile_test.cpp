// Where the flash kernels put a tile in shared memory.
#include "kernels/common/swizzled_tile.cuh"

#include <cstdint>
#include <set>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr std::uint32_t kRows = 64;
constexpr std::uint32_t kBankLine = 128;  // bytes that all 32 banks hold side by side

TEMPLATE_TEST_CASE_SIG("swizzled tile: every chunk has a place of its own within the tile",
                       "[attention][prefill][swizzle]", ((int kCols), kCols), 64, 96, 128, 192, 256) {
  using Tile = SwizzledTile<kCols>;
  std::set<std::uint32_t> places;
  for (std::uint32_t row = 0; row < kRows; ++row)
    for (std::uint32_t chunk = 0; chunk < Tile::kChunks; ++chunk) places.insert(Tile::offset(row, chunk));
  CHECK(places.size() == std::size_t{kRows} * Tile::kChunks);
  CHECK(*places.begin() == 0);
  CHECK(*places.rbegin() == kRows * Tile::kRowBytes - 16);
}

TEMPLATE_TEST_CASE_SIG("swizzled tile: one chunk of 8 consecutive rows covers all banks once",
                       "[attention][prefill][swizzle]", ((int kCols), kCols), 64, 96, 128, 192, 256) {
  using Tile = SwizzledTile<kCols>;
  for (std::uint32_t first = 0; first < kRows; first += 8) {
    for (std::uint32_t chunk = 0; chunk < Tile::kChunks; ++chunk) {
      std::set<std::uint32_t> banks;
      for (std::uint32_t row = first; row < first + 8; ++row) banks.insert(Tile::offset(row, chunk) % kBankLine);
      REQUIRE(banks.size() == 8);
    }
  }
}

TEMPLATE_TEST_CASE_SIG("swizzled tile: a step of two chunks from chunk 0 or 1 needs no row",
                       "[attention][prefill][swizzle]", ((int kCols), kCols), 64, 96, 128, 192, 256) {
  using Tile = SwizzledTile<kCols>;
  constexpr std::uint32_t kTileStart = 3 * kBankLine;
  for (std::uint32_t row = 0; row < kRows; ++row) {
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      for (std::uint32_t k = 0; chunk + 2 * k < Tile::kChunks; ++k)
        REQUIRE(Tile::step(kTileStart + Tile::offset(row, chunk), k) == kTileStart + Tile::offset(row, chunk + 2 * k));
    }
  }
}

TEMPLATE_TEST_CASE_SIG("swizzled tile: a power of two of rows further needs no chunk", "[attention][decode][swizzle]",
                       ((int kCols), kCols), 16, 32, 64, 96, 128, 192, 256) {
  using Tile = SwizzledTile<kCols>;
  constexpr std::uint32_t kTileStart = 3 * kBankLine;
  for (std::uint32_t step = 1; step <= 16; step *= 2)
    for (std::uint32_t row = 0; row < step; ++row)
      for (std::uint32_t r = 0; r < kRows; r += step)
        for (std::uint32_t chunk = 0; chunk < Tile::kChunks; ++chunk)
          REQUIRE(Tile::rows_further(kTileStart + Tile::offset(row, chunk), r) ==
                  kTileStart + Tile::offset(row + r, chunk));
}

}  // namespace
}  // namespace inferometer
