// Where a tile's elements lie in shared memory.
#include "kernels/matmul/tile_shape.cuh"

#include <set>

#include "kernels/matmul/tile_table.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {
namespace {

constexpr int kRowChunks = kTileK / kChunkElems;

TEST_CASE("matmul stage: every chunk has a place of its own", "[matmul]") {
  std::set<int> offsets;
  for (int row = 0; row < 256; ++row) {
    for (int chunk = 0; chunk < kRowChunks; ++chunk) {
      const int offset = stage_offset(row, chunk);
      CHECK(offset % 16 == 0);
      CHECK(offset < 256 * kTileK * 2);
      offsets.insert(offset);
    }
  }
  CHECK(offsets.size() == std::size_t{256} * kRowChunks);
}

TEST_CASE("matmul stage: eight rows of one chunk, and eight chunks of one row, meet no bank twice", "[matmul]") {
  const auto bank_group = [](int row, int chunk) { return stage_offset(row, chunk) / 16 % 8; };
  for (int first_row = 0; first_row < 64; first_row += 8) {
    for (int fixed = 0; fixed < 8; ++fixed) {
      std::set<int> of_rows;
      std::set<int> of_chunks;
      for (int i = 0; i < 8; ++i) {
        of_rows.insert(bank_group(first_row + i, fixed));
        of_chunks.insert(bank_group(first_row + fixed, i));
      }
      CHECK(of_rows.size() == 8);
      CHECK(of_chunks.size() == 8);
    }
  }
}

TEST_CASE("matmul stage: a step along k is one XOR", "[matmul]") {
  for (int row = 0; row < 16; ++row) {
    for (int chunk = 0; chunk < 2; ++chunk) {
      for (int step = 0; step < kTileK / kMmaK; ++step)
        CHECK(stage_offset(row, chunk + 2 * step) == (stage_offset(row, chunk) ^ step * kMmaK * 2));
    }
  }
}

TEST_CASE("matmul shapes: each fits the shared memory of an SM as often as it says", "[matmul]") {
  constexpr std::size_t kSmBytes = 233472;      // H100 and H200
  constexpr std::size_t kReservedBytes = 1024;  // of every block, by the driver
  constexpr std::size_t kBlockBytes = 232448;   // the most of one block
  for (const TileCost& cost : kTileTable) {
    INFO(cost.shape.tile_m << " x " << cost.shape.tile_n);
    CHECK(cost.shape.smem_bytes() <= kBlockBytes);
    CHECK((cost.shape.smem_bytes() + kReservedBytes) * static_cast<std::size_t>(cost.shape.blocks_per_sm) <= kSmBytes);
  }
}

}  // namespace
}  // namespace inferometer::test
