// How a sequence is cut into parts along its keys. Host and device share it: the host sizes the grid and the
// workspace, every block finds its own keys.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Keys that one warp fetches and multiplies at a time: the row count of one mma. Parts are whole tiles.
inline constexpr int kTileKeys = 16;

// Keys of each part when `length` keys are cut into `parts` equal ones; the last parts may be shorter or empty.
INFEROMETER_HOST_DEVICE constexpr std::int32_t part_keys(std::int32_t length, std::int32_t parts) {
  const std::int32_t even = length / parts + (length % parts != 0 ? 1 : 0);
  return (even + kTileKeys - 1) / kTileKeys * kTileKeys;
}

// Parts that hold a key; one, for the output's sake, when there is no key at all.
INFEROMETER_HOST_DEVICE constexpr std::int32_t nonempty_parts(std::int32_t length, std::int32_t keys_per_part) {
  return length <= keys_per_part ? 1 : (length - 1) / keys_per_part + 1;
}

}  // namespace inferometer
