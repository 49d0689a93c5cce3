// How a sequence is cut into parts along its keys. Host and device share it: the host sizes the grid and the
// workspace, every block finds its own keys.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer {

// Parts are multiples of so many keys: whole tiles of every storage format (shape.hpp).
inline constexpr int kPartKeys = 32;

// Keys of each part when `length` keys are cut into `parts` equal ones; the last parts may be shorter or empty.
INFEROMETER_HOST_DEVICE constexpr std::int32_t part_keys(std::int32_t length, std::int32_t parts) {
  const std::int32_t even = length / parts + (length % parts != 0 ? 1 : 0);
  return (even + kPartKeys - 1) / kPartKeys * kPartKeys;
}

// Parts that hold a key; one, for the output's sake, when there is no key at all.
INFEROMETER_HOST_DEVICE constexpr std::int32_t nonempty_parts(std::int32_t length, std::int32_t keys_per_part) {
  return length <= keys_per_part ? 1 : (length - 1) / keys_per_part + 1;
}

// Where the parts begin: keys before it are outside the window of every one of the last q_len queries. A multiple of
// kPartKeys, so that tiles start where they start without a window.
INFEROMETER_HOST_DEVICE constexpr std::int32_t first_part_key(std::int32_t length, std::int32_t q_len,
                                                              std::int32_t window_left) {
  if (window_left < 0) return 0;
  const std::int64_t first = std::int64_t{length} - q_len - window_left;
  return first <= 0 ? 0 : static_cast<std::int32_t>(first / kPartKeys * kPartKeys);
}

// Warp of a block whose tile holds the newest key of a sequence of `length` keys, when the block has keys
// [first_key, end_key) and its warps take tiles in turn; -1: none.
INFEROMETER_HOST_DEVICE constexpr int newest_key_warp(int first_key, int end_key, int length, int tile_keys,
                                                      int warps) {
  if (first_key >= length || end_key != length) return -1;
  return (length - 1 - first_key) / tile_keys % warps;
}

}  // namespace inferometer
