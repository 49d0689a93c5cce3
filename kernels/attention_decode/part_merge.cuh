// The end of a unit: the warps' results become the block's, the blocks' become the output.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/partition.hpp"
#include "kernels/common/half_ops.cuh"

namespace inferometer::decode {

constexpr float kLog2E = 1.44269504F;

// What one block works on: a part of the keys of one sequence, for one block of the query rows of one KV head.
struct Part {
  std::int64_t unit;  // the sequence, KV head and row block that it is a part of
  int sequence;
  int kv_head;
  int first_row;  // query rows [first_row, end_row) of the KV head: row r is new token r / group, query head r % group
  int end_row;
  int length;     // of the sequence
  int index;      // of this part
  int count;      // parts of this sequence that hold keys; blocks of further parts have nothing to do
  int first_key;  // keys [first_key, end_key)
  int end_key;
};

// KV heads vary fastest: their rows are neighbours in memory and are read at the same time. Row blocks come next, so
// that the second one finds K and V in the L2.
template <class Shape>
__device__ __forceinline__ Part part_of_block(const DecodeArgs& args, unsigned block) {
  Part part;
  part.kv_head = block % args.kv_heads;
  block /= args.kv_heads;
  const int row_block = block % args.row_blocks;
  block /= args.row_blocks;
  part.index = block % args.parts;
  part.sequence = block / args.parts;
  part.unit = (std::int64_t{part.sequence} * args.kv_heads + part.kv_head) * args.row_blocks + row_block;
  part.first_row = row_block * Shape::kBlockRows;
  part.end_row = min(part.first_row + Shape::kBlockRows, args.group * args.q_len);
  part.length = args.seq_lens[part.sequence];
  const int keys = args.keys_per_part > 0 ? args.keys_per_part : part_keys(part.length, args.parts);
  part.count = nonempty_parts(part.length, keys);
  part.first_key = part.index * keys;
  part.end_key = min(part.first_key + keys, part.length);
  return part;
}

// Element of Q and O at which a query row begins.
template <class Shape>
__device__ __forceinline__ std::int64_t query_offset(const DecodeArgs& args, const Part& part, int row) {
  const std::int64_t token = std::int64_t{part.sequence} * args.q_len + row / args.group;
  return ((token * args.kv_heads + part.kv_head) * args.group + row % args.group) * Shape::kHeadDim;
}

// Four neighbouring elements of one row of O, and the softmax they stand under.
struct RowQuad {
  SoftmaxState state;
  float4 o = {0, 0, 0, 0};

  __device__ void add(SoftmaxState other, float4 x, float scale_log2) {
    const float max = fmaxf(state.max, other.max);
    const float keep = rescale_factor(state.max, max, scale_log2);
    const float take = rescale_factor(other.max, max, scale_log2);
    state = {max, state.sum * keep + other.sum * take};
    o = {o.x * keep + x.x * take, o.y * keep + x.y * take, o.z * keep + x.z * take, o.w * keep + x.w * take};
  }

  template <class T, class Shape>
  __device__ void store(const DecodeArgs& args, const Part& part, int row, int dim) const {
    const float factor = normaliser(state);
    const uint2 packed = {pack_pair<T>(o.x * factor, o.y * factor), pack_pair<T>(o.z * factor, o.w * factor)};
    *reinterpret_cast<uint2*>(static_cast<T*>(args.o) + query_offset<Shape>(args, part, row) + dim) = packed;
    if (dim == 0) {
      const std::int64_t head =
          (std::int64_t{part.sequence} * args.kv_heads + part.kv_head) * args.group + row % args.group;
      args.lse[head * args.q_len + row / args.group] = log_sum_exp(state, args.scale);
    }
  }
};

// Leaves every warp's O and states in shared memory.
template <class Shape, class WarpTile>
__device__ __forceinline__ void share_warp_tile(WarpTile& tile, unsigned char* shared) {
  const int warp = threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  auto* outputs = reinterpret_cast<float*>(shared) + warp * Shape::kBlockRows * Shape::kMergeStride;
  auto* states = reinterpret_cast<SoftmaxState*>(shared + Shape::kMergeStatesAt) + warp * Shape::kBlockRows;
#pragma unroll
  for (int t = 0; t < Shape::kRowTiles; ++t)
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = t * 8 + lane % 4 * 2 + i;
      SoftmaxState state = tile.state[t][i];
#pragma unroll
      for (int distance = 4; distance < 32; distance *= 2)
        state.sum += __shfl_xor_sync(0xffffffffU, state.sum, distance);
      if (lane / 4 == 0) states[row] = state;
#pragma unroll
      for (int d = 0; d < Shape::kHeadDim / 16; ++d) {
        outputs[row * Shape::kMergeStride + d * 16 + lane / 4] = tile.o[t][d][i];
        outputs[row * Shape::kMergeStride + d * 16 + lane / 4 + 8] = tile.o[t][d][i + 2];
      }
    }
}

// True in every thread of the unit's last block to come here: it then sees what the others wrote before.
__device__ __forceinline__ bool arrives_last(const DecodeArgs& args, const Part& part) {
  __threadfence();  // this thread's partial results before the block's arrival
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    last = atomicAdd(&args.arrivals[part.unit], 1U) + 1 == part.count;
    if (last) args.arrivals[part.unit] = 0;  // for the next launch
  }
  last = __syncthreads_or(last);
  __threadfence();  // the arrivals before the reads of partial results
  return last;
}

// Merges the warps and writes the part; the last block merges the parts, in their order, so that the result does not
// depend on which block came last.
template <class T, class Shape, class WarpTile>
__device__ __forceinline__ void finish_part(const DecodeArgs& args, const Part& part, WarpTile& tile,
                                            unsigned char* shared) {
  constexpr int kQuads = Shape::kHeadDim / 4;
  const float scale_log2 = args.scale * kLog2E;
  const int items = (part.end_row - part.first_row) * kQuads;
  const std::int64_t first_slot = part.unit * args.parts * Shape::kBlockRows;

  __syncthreads();  // every warp is done with its ring, which the results overwrite
  share_warp_tile<Shape>(tile, shared);
  __syncthreads();
  const auto* outputs = reinterpret_cast<const float*>(shared);
  const auto* states = reinterpret_cast<const SoftmaxState*>(shared + Shape::kMergeStatesAt);
  for (int item = threadIdx.x; item < items; item += Shape::kThreads) {
    const int row = item / kQuads;
    const int dim = item % kQuads * 4;
    RowQuad quad;
#pragma unroll
    for (int warp = 0; warp < Shape::kWarps; ++warp) {
      const int at = warp * Shape::kBlockRows + row;
      quad.add(states[at], *reinterpret_cast<const float4*>(outputs + at * Shape::kMergeStride + dim), scale_log2);
    }
    if (part.count == 1) {
      quad.store<T, Shape>(args, part, part.first_row + row, dim);
    } else {
      const std::int64_t slot = first_slot + part.index * Shape::kBlockRows + row;
      *reinterpret_cast<float4*>(args.partial_outputs + slot * Shape::kHeadDim + dim) = quad.o;
      if (dim == 0) args.partial_states[slot] = quad.state;
    }
  }
  if (part.count == 1 || !arrives_last(args, part)) return;

  for (int item = threadIdx.x; item < items; item += Shape::kThreads) {
    const int row = item / kQuads;
    const int dim = item % kQuads * 4;
    RowQuad quad;
#pragma unroll 8  // loads of eight parts in flight: they come from the L2
    for (int i = 0; i < part.count; ++i) {
      const std::int64_t slot = first_slot + i * Shape::kBlockRows + row;
      const float2 state = __ldcg(reinterpret_cast<const float2*>(args.partial_states + slot));
      quad.add({state.x, state.y},
               __ldcg(reinterpret_cast<const float4*>(args.partial_outputs + slot * Shape::kHeadDim + dim)),
               scale_log2);
    }
    quad.store<T, Shape>(args, part, part.first_row + row, dim);
  }
}

}  // namespace inferometer::decode
