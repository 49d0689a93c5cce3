#include "reference/checkpoint/packed_words.hpp"

#include <algorithm>

namespace inferometer {
namespace {

int place_of(PlaceOfValue places, std::int64_t value) {
  return places.empty() ? static_cast<int>(value) : places[static_cast<std::size_t>(value)];
}

}  // namespace

std::vector<std::uint32_t> pack_rows(std::span<const std::uint8_t> values, std::int64_t rows, std::int64_t columns,
                                     std::int64_t bits, PlaceOfValue places) {
  const std::int64_t per_word = values_per_word(bits);
  const std::int64_t row_words = words_for(columns, bits);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * row_words));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t w = 0; w < row_words; ++w) {
      std::uint32_t word = 0;
      const std::int64_t count = std::min(per_word, columns - w * per_word);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::uint32_t value = values[static_cast<std::size_t>(row * columns + w * per_word + i)];
        word |= value << (place_of(places, i) * static_cast<int>(bits));
      }
      words[static_cast<std::size_t>(row * row_words + w)] = word;
    }
  }
  return words;
}

std::vector<std::uint8_t> unpack_rows(std::span<const std::uint32_t> words, std::int64_t rows, std::int64_t columns,
                                      std::int64_t bits, PlaceOfValue places) {
  const std::int64_t per_word = values_per_word(bits);
  const std::int64_t row_words = words_for(columns, bits);
  const std::uint32_t mask = (1U << bits) - 1;
  std::vector<std::uint8_t> values(static_cast<std::size_t>(rows * columns));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::uint32_t word = words[static_cast<std::size_t>(row * row_words + column / per_word)];
      const int shift = place_of(places, column % per_word) * static_cast<int>(bits);
      values[static_cast<std::size_t>(row * columns + column)] = static_cast<std::uint8_t>((word >> shift) & mask);
    }
  }
  return values;
}

}  // namespace inferometer
