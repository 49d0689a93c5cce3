// Which threads hold a row of rms_norm, for host and device.
#pragma once

#include <bit>
#include <cstdint>

namespace inferometer::rms_norm {

inline constexpr std::int64_t kVecElems = 8;  // f16 or bf16 values in one 16-byte access

// Vectors of a row in one thread, all on their way at once. The thousand threads that find registers in an SM then wait
// for 32 KB; half of the traffic are stores, so an SM of an H200 (4.8 TB/s, some 800 ns, 132 SMs) needs 15 KB.
inline constexpr int kThreadVecs = 2;

inline constexpr int kMostThreads = 1024;      // of a row
inline constexpr int kSmallRowsThreads = 256;  // of a block that holds several rows
inline constexpr std::int64_t kMostHidden = kVecElems * kThreadVecs * kMostThreads;

struct RowPlan {
  int row_threads;  // a power of two up to a warp, which shuffles alone can sum over; else whole warps
  int block_rows;   // more than one only where a warp is enough for a row
};

// `hidden` is a multiple of kVecElems, from that to kMostHidden. The same for any number of rows: what a row gives does
// not depend on the batch that it is in.
constexpr RowPlan plan_rows(std::int64_t hidden) {
  const auto threads = static_cast<unsigned>((hidden / kVecElems + kThreadVecs - 1) / kThreadVecs);
  if (threads > 32) return {.row_threads = static_cast<int>((threads + 31) / 32 * 32), .block_rows = 1};
  const auto row_threads = static_cast<int>(std::bit_ceil(threads));
  return {.row_threads = row_threads, .block_rows = kSmallRowsThreads / row_threads};
}

}  // namespace inferometer::rms_norm
