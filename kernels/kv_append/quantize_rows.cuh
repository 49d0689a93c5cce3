// kv_bits 8 and 4: new keys and values are quantised on the way into the cache.
//
// A row is one token's key or value of one head. A lane takes 16 neighbouring elements of the key and of the value of
// one row; a warp takes as many neighbouring tokens of one head as its lanes can hold, for the short rows of codes they
// become lie side by side in the cache, and so do their scales. What a group needs once, all its lanes do; fewer lanes
// with more elements each issue fewer instructions, and these took longer than the memory where a lane held 8 elements
// (results/notes/kv_append.md). No shared memory, no barrier.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_append/append_args.hpp"
#include "kernels/kv_append/group_codes.cuh"
#include "kernels/kv_append/slots.cuh"

namespace inferometer::append {

inline constexpr int kQuantizeThreads = 256;
inline constexpr int kQuantizeWarps = kQuantizeThreads / 32;

// Stores the codes of a lane's two vectors, or of the first alone, at an address that is a multiple of theirs together.
template <class Packed>
__device__ __forceinline__ void store_codes(std::byte* to, const Packed (&codes)[kLaneVectors], bool both) {
  if (both) {
    *reinterpret_cast<decltype(joined(codes[0], codes[1]))*>(to) = joined(codes[0], codes[1]);
  } else {
    *reinterpret_cast<Packed*>(to) = codes[0];
  }
}

template <class T, class Codes, class Slots>
__global__ void __launch_bounds__(kQuantizeThreads) quantize_rows_kernel(const __grid_constant__ AppendArgs args) {
  using Packed = typename Codes::Packed;
  // Heads run faster than tokens: the warps of a block read neighbouring heads, whole tokens where they can.
  const std::uint32_t warp = blockIdx.x * kQuantizeWarps + threadIdx.x / 32;
  const std::uint32_t tile = args.kv_heads.quotient(warp);
  const std::uint32_t head = args.kv_heads.remainder(warp, tile);
  const std::uint32_t lane = threadIdx.x % 32;
  const std::uint32_t lane_of_row = lane & ((1U << args.row_lanes_log2) - 1);
  const std::uint32_t row_of_warp = lane >> args.row_lanes_log2;
  const std::uint32_t token_or_past = tile * (32U >> args.row_lanes_log2) + row_of_warp;
  const std::uint32_t vector = kLaneVectors * lane_of_row;  // of the row, the lane's first
  const bool exists = token_or_past < args.tokens && vector < args.head_vectors;

  // Lanes past the end load what the last ones do: the maximum of a group stays, and no branch holds up the loads.
  const std::uint32_t token = min(token_or_past, args.tokens - 1);
  const std::uint32_t row_from = (token * args.kv_heads.divisor() + head) * args.head_vectors;
  uint4 k[kLaneVectors];
  uint4 v[kLaneVectors];
#pragma unroll
  for (int i = 0; i < kLaneVectors; ++i) {
    const std::uint32_t from = row_from + min(vector + i, args.head_vectors - 1);
    k[i] = __ldg(static_cast<const uint4*>(args.k_new) + from);
    v[i] = __ldg(static_cast<const uint4*>(args.v_new) + from);
  }
  // One lane of each row looks up its slot. In a branch, for the two lookups must be under way before K and V are
  // waited for; the compiler would move the second, which needs the first, behind that wait.
  Slot slot{};
  if (lane_of_row == 0) slot = Slots::at(args, position_of(args, token));
  const int first_lane = static_cast<int>(lane - lane_of_row);
  slot = {__shfl_sync(kWholeWarp, slot.area, first_lane), __shfl_sync(kWholeWarp, slot.index, first_lane)};
  const std::int64_t row =
      (std::int64_t{slot.area} * args.kv_heads.divisor() + head) * args.span.divisor() + slot.index;

  const GroupScales scales =
      GroupScales::of<T>(greatest_of_group(greatest_magnitudes(k, v), args.group_lanes_log2), Codes::kLargest);
  Packed k_codes[kLaneVectors];
  Packed v_codes[kLaneVectors];
  if (scales.both_plain()) {
#pragma unroll
    for (int i = 0; i < kLaneVectors; ++i) {
      k_codes[i] = Codes::pack(scaled<T>(k[i], scales.k_inverse));
      v_codes[i] = Codes::pack(scaled<T>(v[i], scales.v_inverse));
    }
  } else {
#pragma unroll
    for (int i = 0; i < kLaneVectors; ++i) {
      k_codes[i] = careful_codes<T, Codes>(k[i], scales.k_bits(), scales.k_inverse);
      v_codes[i] = careful_codes<T, Codes>(v[i], scales.v_bits(), scales.v_inverse);
    }
  }

  if (!exists) return;
  const std::int64_t to = row * args.row_bytes + vector * sizeof(Packed);
  const bool both = vector + 1 < args.head_vectors;
  store_codes(static_cast<std::byte*>(args.k) + to, k_codes, both);
  store_codes(static_cast<std::byte*>(args.v) + to, v_codes, both);
  if ((lane & ((1U << args.group_lanes_log2) - 1)) == 0)
    static_cast<std::uint32_t*>(args.kv_scales)[row * args.groups + (lane_of_row >> args.group_lanes_log2)] =
        scales.bits;
}

}  // namespace inferometer::append
