// Where weights of 8 and 4 bits lie for cuda.w4a16 and cuda.w8a16.
#include "kernels/matmul/packing.hpp"

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

template <int kBits>
void check_round_trip() {
  constexpr int kWords = kTileRows * kSliceK * kBits / 32;
  std::set<std::pair<int, int>> places;
  for (int row = 0; row < kTileRows; ++row) {
    for (int k = 0; k < kSliceK; ++k) {
      const CodePlace place = code_place<kBits>(row, k);
      CHECK(place.word >= 0);
      CHECK(place.word < kWords);
      CHECK(place.bit % kBits == 0);
      CHECK(place.bit < 32);
      CHECK(places.insert({place.word, place.bit}).second);
      CHECK(tile_element<kBits>(place.word, place.bit / kBits) == TileElement{row, k});
    }
  }
  CHECK(places.size() == std::size_t{kTileRows} * kSliceK);
}

TEST_CASE("packing: every element of a tile has a place of its own and is found again", "[matmul]") {
  check_round_trip<4>();
  check_round_trip<8>();
}

// ptx/mma.cuh: lane 4 g + t holds A[g][2t, 2t+1], A[g+8][the same], A[g][2t+8, 2t+9], A[g+8][the same].
template <int kBits>
void check_lanes() {
  for (int row = 0; row < kTileRows; ++row) {
    for (int k = 0; k < kSliceK; ++k) {
      const int lane = row % 8 * 4 + k % 8 / 2;
      CHECK(code_place<kBits>(row, k).word / 4 % 32 == lane);
    }
  }
}

TEST_CASE("packing: an element lies in the 16 bytes of the lane whose fragment takes it", "[matmul]") {
  check_lanes<4>();
  check_lanes<8>();
}

TEST_CASE("packing: neighbours in k lie 16 bits apart, upper rows and later k in the next field", "[matmul]") {
  CHECK(code_place<4>(0, 0) == CodePlace{0, 0});
  CHECK(code_place<4>(0, 1) == CodePlace{0, 16});
  CHECK(code_place<4>(8, 0) == CodePlace{0, 4});
  CHECK(code_place<4>(0, 8) == CodePlace{0, 8});
  CHECK(code_place<4>(8, 9) == CodePlace{0, 28});
  CHECK(code_place<4>(0, 16) == CodePlace{1, 0});
  CHECK(code_place<4>(1, 2) == CodePlace{20, 0});
  CHECK(code_place<8>(0, 1) == CodePlace{0, 16});
  CHECK(code_place<8>(8, 0) == CodePlace{0, 8});
  CHECK(code_place<8>(0, 8) == CodePlace{1, 0});
  CHECK(code_place<8>(0, 16) == CodePlace{2, 0});
  CHECK(code_place<8>(0, 32) == CodePlace{128, 0});
}

TEST_CASE("packing: tiles fill a matrix without overlap or gap", "[matmul]") {
  for (const std::int64_t n : {1, 7, 16, 64, 65, 256, 257, 1440, 1441}) {
    for (const std::int64_t k : {8, 64, 72, 320}) {
      for (const int bits : {4, 8}) {
        for (const bool symmetric : {true, false}) {
          const PackedShape shape = {.n = n, .k = k, .bits = bits, .group_size = 32, .symmetric = symmetric};
          INFO("n=" << n << " k=" << k << " bits=" << bits << " symmetric=" << symmetric);
          CHECK(shape.row_tiles() * kTileRows >= n);
          std::vector<bool> used(static_cast<std::size_t>(shape.row_tiles() * shape.slices()));
          for (std::int64_t tile = 0; tile < shape.row_tiles(); ++tile) {
            for (std::int64_t slice = 0; slice < shape.slices(); ++slice) {
              const std::int64_t at = shape.tile_at(tile, slice);
              REQUIRE(at % shape.tile_bytes() == 0);
              const auto index = static_cast<std::size_t>(at / shape.tile_bytes());
              REQUIRE(index < used.size());
              CHECK_FALSE(used[index]);
              used[index] = true;
            }
          }
        }
      }
    }
  }
}

TEST_CASE("packing: a block's tiles of a slice are contiguous within a panel of 256 rows", "[matmul]") {
  const PackedShape shape = {.n = 1000, .k = 640, .bits = 4, .group_size = 128, .symmetric = true};
  for (std::int64_t tile = 0; tile + 1 < shape.row_tiles(); ++tile) {
    if ((tile + 1) % kPanelTiles == 0) continue;
    for (std::int64_t slice = 0; slice < shape.slices(); ++slice)
      CHECK(shape.tile_at(tile + 1, slice) == shape.tile_at(tile, slice) + shape.tile_bytes());
  }
}

TEST_CASE("packing: a tile holds its codes, the scales of its groups, and zero points where they vary", "[matmul]") {
  const auto bytes = [](int bits, int group_size, bool symmetric) {
    return PackedShape{.n = 64, .k = 64, .bits = bits, .group_size = group_size, .symmetric = symmetric}.tile_bytes();
  };
  CHECK(bytes(4, 128, true) == 512 + 32);
  CHECK(bytes(4, 0, true) == 512 + 32);
  CHECK(bytes(4, 32, true) == 512 + 64);
  CHECK(bytes(4, 64, false) == 512 + 32 + 16);
  CHECK(bytes(8, 32, false) == 1024 + 64 + 32);
  for (const int bits : {4, 8})
    for (const int group_size : {0, 32, 64, 128})
      for (const bool symmetric : {true, false}) CHECK(bytes(bits, group_size, symmetric) % 16 == 0);
}

}  // namespace
}  // namespace inferometer::test
