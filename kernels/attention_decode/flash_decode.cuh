// Split-KV flash decoding: one block computes one part of the keys for the query rows of one KV head.
//
//   S = Q K^T, P = softmax(S), O = P V   per KV head; rows are its `group` query heads times q_len new tokens
//
// Bound by reading K and V once, so everything serves the loads. Each warp streams its own tiles of keys through its
// own ring of shared-memory stages (tile_stream.cuh): no block barrier in the loop, and kStages - 1 tiles per warp
// always in flight. The products are taken transposed, S^T = K Q^T and O^T = V^T P^T (warp_tile.cuh): keys and
// dimensions fill the 16 rows of mma.m16n8k16, and the few query rows need only 8 columns, not 16 rows of padding.
// Codes become 16-bit floats on their way into the mma, exactly; K's scales go to the scores, V's to the weights.
// After: Dao et al., "Flash-Decoding for long-context inference", 2023; Milakov and Gimelshein 2018 (online softmax).
#pragma once

#include "kernels/attention_decode/part_merge.cuh"
#include "kernels/attention_decode/shape.hpp"
#include "kernels/attention_decode/tile_stream.cuh"
#include "kernels/attention_decode/warp_tile.cuh"

namespace inferometer::decode {

template <class T, class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksPerSm) flash_decode_kernel(const DecodeArgs args) {
  extern __shared__ __align__(128) unsigned char shared[];
  Part part = part_of_block<Shape>(args);
  announce_block(args);
  const std::int32_t length = __ldg(args.seq_lens + part.sequence);
  if (!starts_are_fixed(args)) set_length(part, args, length);

  const int warp = __shfl_sync(kAllLanes, threadIdx.x / 32, 0);  // tells the compiler that the whole warp agrees
  TileStream<Shape> stream(args, part, shared, warp);
  WarpTile<T, Shape> tile;
  tile.load_queries(args, part);
  // Waits for the length; where every sequence may have early_keys, the first copies do not. What they bring of keys
  // that do not exist is cleared or never looked at.
  if (args.early_keys == 0) set_length(part, args, length);
  stream.start(part.end_key);
  if (args.early_keys > 0) set_length(part, args, length);
  // No keys: nothing to do, unless the others of the cluster wait for this block.
  if (part.index >= part.count && (!args.cluster || part.count == 1)) return cp_async_wait<0>();
  tile.measure_bias();

  const float scale_log2 = args.scale * kLog2E;
  const float slack = __fdividef(8.0F, scale_log2);
  const int seen_end = part.length - args.q_len + 1;  // keys in [seen_begin, seen_end) are seen by every query
  const int seen_begin = args.window_left < 0 ? 0 : part.length - 1 - args.window_left;
  for (int key = part.first_key + warp * Shape::kTileKeys; key < part.end_key; key += stream.kStep) {
    const std::uint32_t stage = stream.next(part.end_key);
    if (key + Shape::kTileKeys > part.end_key) stream.clear_from(stage, part.end_key - key, args.groups);
    Scores<Shape> s = {};
    tile.multiply_keys(s, stage, args);
    if (args.soft_cap > 0) tile.cap_scores(s, args.soft_cap);
    if (key + Shape::kTileKeys > seen_end || key < seen_begin) tile.hide_keys(s, args, part, key);
    tile.update_softmax(s, scale_log2, slack);
    tile.multiply_values(s, stage, args);
  }
  finish_part<T, Shape>(args, part, tile, shared);
}

}  // namespace inferometer::decode
