// Where a 16-byte chunk of a row-major tile of 16-bit elements lies in shared memory.
//
// ldmatrix reads the same chunk of 8 consecutive rows at once; stored plainly, rows of 128 bytes or more put all 8 into
// the same 4 banks. So the chunk's index is XORed with a key made from its row: the 8 reads, and the 8 rows of a
// fragment stored after the loop, then cover all 32 banks, without the padding that would misalign rows.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

template <int kCols>
struct SwizzledTile {
  static_assert(kCols % 32 == 0 || kCols == 16, "a row is a number of half bank lines, or a quarter of one");
  static constexpr int kChunks = kCols / 8;
  static constexpr int kRowBytes = kCols * 2;
  // Rows that start at multiples of the 128 bytes all banks hold: 8 keys. Otherwise odd rows already start half a bank
  // line later, and 4 keys, each for two rows, complete the 8 places; or four rows share a line, and 2 keys do.
  static constexpr bool kWholeLines = kRowBytes % 128 == 0;
  static constexpr std::uint32_t kRowsPerLine = kCols == 16 ? 4 : kWholeLines ? 1 : 2;
  static constexpr std::uint32_t kKeyMask = 8 / kRowsPerLine - 1;

  INFEROMETER_HOST_DEVICE static constexpr std::uint32_t key(std::uint32_t row) {
    return row / kRowsPerLine & kKeyMask;
  }

  // Byte offset of a chunk from the tile's start.
  INFEROMETER_HOST_DEVICE static constexpr std::uint32_t offset(std::uint32_t row, std::uint32_t chunk) {
    return row * kRowBytes + ((chunk ^ key(row)) << 4);
  }

  // offset(row, chunk + 2 k) from offset(row, chunk), chunk 0 or 1, for a tile aligned to 128 bytes. The row is not
  // needed: an even step touches other bits than the chunk. Constant k leaves one XOR and an immediate offset.
  INFEROMETER_HOST_DEVICE static constexpr std::uint32_t step(std::uint32_t address, std::uint32_t k) {
    const std::uint32_t chunks = 2 * k;
    return (address ^ ((chunks & kKeyMask) << 4)) + ((chunks & ~kKeyMask) << 4);
  }

  // offset(row + r, chunk) from offset(row, chunk), for a tile aligned to 128 bytes and r a multiple of a power of two
  // above row. Constant r leaves one XOR and an immediate offset, as in step().
  INFEROMETER_HOST_DEVICE static constexpr std::uint32_t rows_further(std::uint32_t address, std::uint32_t r) {
    return (address ^ (key(r) << 4)) + r * kRowBytes;
  }
};

}  // namespace inferometer
