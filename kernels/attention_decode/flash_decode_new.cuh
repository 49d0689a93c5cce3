// flash_decode.cuh for new tokens that are as their product left them (new_tokens.hpp): no kernel of their own turns
// and stores them. 16-bit caches, one new token a sequence, all query rows of a KV head in one block.
//
// Copies of older keys are under way while a block turns its heads. They may bring the newest slot along as it was; the
// warp that owns its tile puts the new key and value in their place.
#pragma once

#include "kernels/attention_decode/new_tokens.cuh"
#include "kernels/attention_decode/part_merge.cuh"
#include "kernels/attention_decode/shape.hpp"
#include "kernels/attention_decode/tile_stream.cuh"
#include "kernels/attention_decode/warp_tile.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer::decode {

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kBlocksPerSm)
    flash_decode_new_kernel(const __grid_constant__ DecodeArgs args, const __grid_constant__ NewTokens tokens) {
#if __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char shared[];
  __shared__ __align__(128) unsigned char turned[NewHeads<Shape>::kBytes];
  static_assert(Shape::kBlocksPerSm * ((Shape::kBlocksPerSm == 1 ? Shape::kSharedBytes : Shape::kInboxAt) +
                                       NewHeads<Shape>::kBytes + 1024) <=
                kSmBytes);
  Part part = part_of_block<Shape>(args);
  announce_block(args);
  const std::int32_t length = __ldg(args.seq_lens + part.sequence);
  if (!starts_are_fixed(args)) set_length(part, args, length);

  const int warp = __shfl_sync(kAllLanes, threadIdx.x / 32, 0);  // tells the compiler that the whole warp agrees
  TileStream<Shape> stream(args, part, shared, warp);
  set_length(part, args, length);
  stream.start(part.end_key);
  // No keys: nothing to do, unless the others of the cluster wait for this block.
  if (part.index >= part.count && (!args.cluster || part.count == 1)) return cp_async_wait<0>();
  NewHeads<Shape> heads(args, tokens, part, warp, shared_address(turned));
  heads.turn_all();
  __syncthreads();
  WarpTile<__half, Shape> tile;
  tile.take_queries([&](int row, int group) { return heads.query_pair(row, group); });

  const float scale_log2 = args.scale * kLog2E;
  const float slack = __fdividef(8.0F, scale_log2);
  const int seen_begin = args.window_left < 0 ? 0 : part.length - 1 - args.window_left;
  for (int key = part.first_key + warp * Shape::kTileKeys; key < part.end_key; key += stream.kStep) {
    const std::uint32_t stage = stream.next(part.end_key);
    if (key + Shape::kTileKeys > part.end_key) stream.clear_from(stage, part.end_key - key, args.groups);
    heads.put_newest(stage, key);
    Scores<Shape> s = {};
    tile.multiply_keys(s, stage, args);
    if (args.soft_cap > 0) tile.cap_scores(s, args.soft_cap);
    if (key + Shape::kTileKeys > part.length || key < seen_begin) tile.hide_keys(s, args, part, key);
    tile.update_softmax(s, scale_log2, slack);
    tile.multiply_values(s, stage, args);
  }
  finish_part<__half, Shape>(args, part, tile, shared);
#endif
}

}  // namespace inferometer::decode
