// Sets of elements of a tensor that are too many to name one by one.
#pragma once

#include <algorithm>
#include <cstdint>

namespace inferometer {

// Elements [begin, end), and the same again `repeats - 1` times, each `stride` elements on: the padding of all rows of
// a tensor is one range.
struct ElementRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t repeats = 1;
  std::int64_t stride = 0;  // at least end - begin where there are repeats

  std::int64_t last_end() const { return end + (repeats - 1) * stride; }
};

// Calls body(first, last) for every part of `range` that lies in [begin, end), in ascending order.
template <class Body>
void for_each_part(const ElementRange& range, std::int64_t begin, std::int64_t end, const Body& body) {
  if (range.begin >= end || range.last_end() <= begin) return;
  std::int64_t repeat = 0;
  if (range.stride > 0 && begin >= range.end) repeat = (begin - range.end) / range.stride + 1;  // ends past begin
  for (; repeat < range.repeats && range.begin + repeat * range.stride < end; ++repeat) {
    const std::int64_t first = std::max(begin, range.begin + repeat * range.stride);
    const std::int64_t last = std::min(end, range.end + repeat * range.stride);
    if (first < last) body(first, last);
  }
}

}  // namespace inferometer
