// Small unsigned integers side by side in 32-bit words, as quantised weights lie in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace inferometer {

// At which of a word's places (0: its lowest bits) each of its values lies; empty: value i at place i.
using PlaceOfValue = std::span<const int>;

constexpr std::int64_t values_per_word(std::int64_t bits) { return 32 / bits; }

constexpr std::int64_t words_for(std::int64_t values, std::int64_t bits) {
  return (values + values_per_word(bits) - 1) / values_per_word(bits);
}

// `values` [rows, columns], each below 2^bits, bits 4 or 8 -> [rows, words_for(columns)]; the rest of a row's last word
// is 0.
std::vector<std::uint32_t> pack_rows(std::span<const std::uint8_t> values, std::int64_t rows, std::int64_t columns,
                                     std::int64_t bits, PlaceOfValue places = {});

// The inverse.
std::vector<std::uint8_t> unpack_rows(std::span<const std::uint32_t> words, std::int64_t rows, std::int64_t columns,
                                      std::int64_t bits, PlaceOfValue places = {});

// [rows, columns] -> [columns, rows]
template <class Element>
std::vector<Element> transposed(std::span<const Element> matrix, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = 64;  // a tile's rows and columns stay in the cache between their elements
  std::vector<Element> turned(matrix.size());
  for (std::int64_t row_tile = 0; row_tile < rows; row_tile += kTile)
    for (std::int64_t column_tile = 0; column_tile < columns; column_tile += kTile)
      for (std::int64_t i = row_tile; i < rows && i < row_tile + kTile; ++i)
        for (std::int64_t j = column_tile; j < columns && j < column_tile + kTile; ++j)
          turned[static_cast<std::size_t>(j * rows + i)] = matrix[static_cast<std::size_t>(i * columns + j)];
  return turned;
}

}  // namespace inferometer
