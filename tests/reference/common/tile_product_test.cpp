// The tile product against a triple loop, and the vector exponential against the library's.
#include "reference/common/tile_product.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

// Small whole numbers: sums are exact in float, whatever their order.
std::vector<float> whole_numbers(std::int64_t count, std::uint32_t state) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<float>(static_cast<int>(state >> 28) - 8);
  }
  return values;
}

void check_product(std::int64_t rows, std::int64_t columns, std::int64_t depth, bool transposed_a, bool accumulate) {
  CAPTURE(rows, columns, depth, transposed_a, accumulate);
  const std::int64_t b_stride = columns + 3;  // not a whole vector: rows of B and C need no alignment
  const std::int64_t c_stride = columns + 5;
  const std::vector<float> a = whole_numbers(rows * depth, 1);
  const std::vector<float> b = whole_numbers(depth * b_stride, 2);
  const std::vector<float> before = whole_numbers(rows * c_stride, 3);
  std::vector<float> c = before;
  const TileView view = transposed_a ? TileView{a.data(), 1, rows} : TileView{a.data(), depth, 1};
  multiply_tile(view, b.data(), b_stride, c.data(), c_stride, rows, columns, depth, accumulate);

  std::vector<float> expected = before;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float sum = accumulate ? before[static_cast<std::size_t>(i * c_stride + j)] : 0.0F;
      for (std::int64_t k = 0; k < depth; ++k)
        sum += a[static_cast<std::size_t>(transposed_a ? k * rows + i : i * depth + k)] *
               b[static_cast<std::size_t>(k * b_stride + j)];
      expected[static_cast<std::size_t>(i * c_stride + j)] = sum;
    }
  }
  CHECK(c == expected);  // the gaps between rows too: nothing is written there
}

}  // namespace

TEST_CASE("tile product: equals the triple loop for A and its transpose, with and without accumulation",
          "[reference][tile]") {
  for (const std::int64_t rows : {kTileRows, 3 * kTileRows})
    for (std::int64_t vectors = 1; vectors <= 2 * kTileVectors + 1; ++vectors)
      for (const std::int64_t depth : {1, 2, 31})
        for (const bool transposed : {false, true})
          for (const bool accumulate : {false, true})
            check_product(rows, vectors * kLanes, depth, transposed, accumulate);
}

TEST_CASE("tile product: a depth of 0 gives zeros, or leaves what is accumulated", "[reference][tile]") {
  check_product(kTileRows, kTileColumns, 0, false, false);
  check_product(kTileRows, kTileColumns, 0, false, true);
}

TEST_CASE("tile product: a tile is transposed into place", "[reference][tile]") {
  const std::vector<float> source = {1, 2, 3, 9,  //
                                     4, 5, 6, 9};
  std::vector<float> transposed(9, 0.0F);
  transpose_tile(source.data(), 4, 2, 3, transposed.data(), 3);
  CHECK(transposed == std::vector<float>{1, 4, 0, 2, 5, 0, 3, 6, 0});
}

TEST_CASE("vector: 2^x errs by less than 2^-23 down to -126 and is exactly 0 below", "[reference][vector]") {
  double worst = 0;
  for (float x = 0; x >= -126; x -= 0x1.234p-8F) {
    const double exact = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::abs(exp2_vector(Vector{} + x)[0] - exact) / exact);
  }
  CHECK(worst < 0x1p-23);
  CHECK(exp2_vector(Vector{})[kLanes - 1] == 1.0F);
  CHECK(exp2_vector(Vector{} - 126.0F)[0] == 0x1p-126F);
  for (const float x : {-126.001F, -127.0F, -1000.0F, -1e30F, -std::numeric_limits<float>::infinity()})
    CHECK(exp2_vector(Vector{} + x)[0] == 0.0F);
  CHECK(std::isnan(exp2_vector(Vector{} + std::numeric_limits<float>::quiet_NaN())[0]));
}
