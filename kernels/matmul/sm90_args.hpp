// What a launch of sm90_matmul_kernel takes.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "kernels/matmul/sm90_work.hpp"

namespace inferometer {

// How the copy engine fetches rows of A or of B, both [rows, k]: in boxes of `box` rows as long as they are whole, and
// what is left at the end in one of `rest` rows, `rows % box` rounded up to 8. (Boxes that reach far past the end are
// slow, and so are many small ones.) A W stored [k, n] comes in boxes of its panels, 64 rows of W, all by whole_map.
struct Sm90Rows {
  CUtensorMap whole_map;
  CUtensorMap rest_map;  // unused where rest is 0
  std::uint32_t rows;
  std::uint32_t box;
  std::uint32_t rest;
};

struct Sm90Args {
  Sm90Rows a;
  Sm90Rows b;
  CUtensorMap y;  // [m, n], boxes of 64 columns; unused where rows of Y are not 16-byte aligned
  void* y_data;   // then this takes its place
  std::int64_t m;
  std::int64_t n;
  Sm90Work work;
  std::uint32_t own_groups;  // sm90_own_groups of the tile
  bool y_aligned;
};

}  // namespace inferometer
