// The products of a decoder layer from one attention to the next (product_chain.hpp) for steps of several tokens, in
// one kernel: how they are cut, and what a launch takes.
//
// Tokens are N of wgmma, bands of 64 rows of W its M. An item is `bands` bands in one of `parts` parts of k; its block
// has it alone. Four warpgroups share an item: one a band, and where it has fewer bands, several that take slices of k
// in turn ("ways"). So x is read once for up to 256 rows of W. Sums of the ways are added up in shared memory, those of
// the parts in the L2.
//
// The ring of weights runs on across items and products. x comes by the copy engine, as soon as all items of the
// product before have been counted.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/dtype.hpp"
#include "kernels/decoder/product_chain.hpp"

namespace inferometer::decoder {

inline constexpr int kWideBandRows = 64;
inline constexpr int kWideSliceK = 64;
inline constexpr int kWideGroups = 4;  // warpgroups that multiply

struct WideProduct {
  int bands = 0;  // of an item: 1, 2 or 4
  int parts = 0;  // of k, a power of two
  int parts_log2 = 0;
  int items = 0;
  int all_bands = 0;
  int part_slices = 0;

  INFEROMETER_HOST_DEVICE constexpr int ways() const { return kWideGroups >> bands / 2; }
};

// The cut that takes the least time by a simple count; items 0: none. Parts are whole stages: `unit_slices` slices of
// k for each way.
constexpr WideProduct cut_wide_product(int rows, int k, int unit_slices, int most_ways, int blocks) {
  WideProduct best;
  int least = 0;
  const int slices = k / kWideSliceK;
  const int all_bands = rows / kWideBandRows;
  if (rows % kWideBandRows != 0 || k % kWideSliceK != 0) return best;
  for (int bands = kWideGroups; bands * most_ways >= kWideGroups; bands /= 2)
    for (int log2 = 0; log2 <= 3; ++log2) {
      const int parts = 1 << log2;
      const int groups = (all_bands + bands - 1) / bands;
      const int items = groups * parts;
      if (slices % (parts * kWideGroups / bands * unit_slices) != 0 || (parts > 1 && items > blocks)) continue;
      const int rounds = (items + blocks - 1) / blocks;
      // A quarter of a slice of a band: reading x, and the exchange of parts' sums, which grows with what is sent.
      const int cost = rounds * (slices / parts) * (4 * bands + 1) + (parts > 1 ? 64 + 5 * bands * (parts - 1) / 2 : 0);
      if (least != 0 && cost >= least) continue;
      least = cost;
      best = {bands, parts, log2, items, all_bands, slices / parts};
    }
  return best;
}

// What blocks leave for one another in a launch.
struct WideExchange {
  std::uint32_t* counters;      // [kChainProducts] of items, kWideCounterStride apart; from -1 on
  float* sums[kChainProducts];  // of parts: [groups, slabs of 8 tokens, parts - 1, bands, 128] vectors of four, unsent
  float* squares[2];            // [tokens, hidden / 16] sums of h^2 behind attention_out and down
  __half* x[kChainProducts];    // [tokens, k], of each product but the first
};
inline constexpr int kWideCounterStride = 32;

struct WideArgs {
  ChainShape shape;
  ChainLayer layer;
  WideProduct products[kChainProducts];
  int product_count;  // three behind the last layer
  int tokens;
  float eps;
  float* h;        // [tokens, hidden]
  __half* qkv;     // [tokens, qkv_rows]
  float* inverse;  // [tokens] 1 / rms(h) at the norm before; the last norm's is left here
  WideExchange exchange;
  std::uint8_t* used;  // counters and sums of the launch before, to be made unsent again
  int used_bytes;
};

// What the copy engine reads in boxes: x of each product, a slice of all tokens; rows of f16 weights, a slice of an
// item's bands.
struct WideMaps {
  CUtensorMap x[kChainProducts];
  CUtensorMap w[kChainProducts];
};

}  // namespace inferometer::decoder
