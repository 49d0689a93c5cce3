// The end of a unit: the warps' results become the block's, the blocks' become the output. The blocks of a unit are a
// cluster and write into each other's shared memory, or, where that cannot be, meet in global memory.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/part.cuh"
#include "kernels/attention_decode/warp_tile.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer::decode {

// Four neighbouring elements of one row of O, and the softmax they stand under.
struct RowQuad {
  SoftmaxState state;
  float4 o = {0, 0, 0, 0};

  __device__ void scale_by(float factor) {
    state.sum *= factor;
    o = {o.x * factor, o.y * factor, o.z * factor, o.w * factor};
  }

  // Sum and elements that stand under another maximum, `factor` times this one's.
  __device__ void add(float sum, float4 x, float factor) {
    state.sum += sum * factor;
    o = {o.x + x.x * factor, o.y + x.y * factor, o.z + x.z * factor, o.w + x.w * factor};
  }

  template <class T, class Shape>
  __device__ void store(const DecodeArgs& args, const Part& part, int row, int dim) const {
    const QueryRow query = query_row(args, row);
    const float factor = normaliser(state);
    const uint2 packed = {pack_pair<T>(o.x * factor, o.y * factor), pack_pair<T>(o.z * factor, o.w * factor)};
    *reinterpret_cast<uint2*>(static_cast<T*>(args.o) + query_offset<Shape>(args, part, query) + dim) = packed;
    if (dim == 0) {
      const std::int64_t head =
          (std::int64_t{part.sequence} * args.kv_heads + part.kv_head) * args.group.divisor() + query.head;
      args.lse[head * args.q_len + query.token] = log_sum_exp(state, args.scale);
    }
  }
};

// Merges `count` quads, eight at a time: state_of(i) and output_of(i) load theirs, all of them before the first is
// used, and no quad waits for the exponential of the one before it.
template <class StateOf, class OutputOf>
__device__ __forceinline__ RowQuad merge_quads(int count, float scale_log2, StateOf state_of, OutputOf output_of) {
  constexpr int kAtOnce = 8;
  RowQuad quad;
  for (int first = 0; first < count; first += kAtOnce) {
    SoftmaxState states[kAtOnce];
    float4 outputs[kAtOnce] = {};
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (first + i >= count) break;
      states[i] = state_of(first + i);
      outputs[i] = output_of(first + i);
    }
    float max = quad.state.max;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) max = fmaxf(max, states[i].max);
    quad.scale_by(rescale_factor(quad.state.max, max, scale_log2));
    quad.state.max = max;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      quad.add(states[i].sum, outputs[i], rescale_factor(states[i].max, max, scale_log2));
  }
  return quad;
}

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
      for (int distance = 4; distance < 32; distance *= 2) state.sum += __shfl_xor_sync(kAllLanes, state.sum, distance);
      if (lane / 4 == 0) states[row] = state;
#pragma unroll
      for (int step = 0; step < Shape::kSteps; ++step)
#pragma unroll
        for (int half = 0; half < 2; ++half)
          outputs[row * Shape::kMergeStride + Shape::Format::output_dim(step, half, lane / 4)] =
              tile.o[t][step][i + 2 * half] * tile.unit(half);
    }
}

// Four elements of a row of the block, its warps merged.
template <class Shape>
__device__ __forceinline__ RowQuad merge_warps(const unsigned char* shared, int row, int dim, float scale_log2) {
  const auto* outputs = reinterpret_cast<const float*>(shared);
  const auto* states = reinterpret_cast<const SoftmaxState*>(shared + Shape::kMergeStatesAt);
  return merge_quads(
      Shape::kWarps, scale_log2, [&](int warp) { return states[warp * Shape::kBlockRows + row]; },
      [&](int warp) {
        return *reinterpret_cast<const float4*>(outputs + (warp * Shape::kBlockRows + row) * Shape::kMergeStride + dim);
      });
}

// Where the blocks of a unit leave their results: `slot` counts (part, row of the block).
struct Partials {
  float* outputs;  // [slots, head_dim]
  SoftmaxState* states;

  __device__ void put(const RowQuad& quad, std::int64_t slot, int dim, int head_dim) const {
    *reinterpret_cast<float4*>(outputs + slot * head_dim + dim) = quad.o;
    if (dim == 0) states[slot] = quad.state;
  }
};

// True in every thread of the unit's last block to come here: it then sees what the others wrote before. One thread's
// fences serve the block, since the barriers order the others' accesses with them.
__device__ __forceinline__ bool arrives_last(const DecodeArgs& args, const Part& part) {
  __syncthreads();
  bool last = false;
  if (threadIdx.x == 0) {
    __threadfence();  // the block's partial results before its arrival
    last = atomicAdd(&args.arrivals[part.unit], 1U) + 1 == part.count;
    if (last) args.arrivals[part.unit] = 0;  // for the next launch
    __threadfence();                         // the arrivals before the reads of partial results
  }
  return __syncthreads_or(last);
}

// Parts are merged in their order whichever block does it, so that the result is the same to the bit.
template <class T, class Shape>
__device__ __forceinline__ void merge_in_global_memory(const DecodeArgs& args, const Part& part,
                                                       const unsigned char* shared, float scale_log2) {
  constexpr int kQuads = Shape::kHeadDim / 4;
  const int items = (part.end_row - part.first_row) * kQuads;
  const std::int64_t first_slot = part.unit * args.parts.divisor() * Shape::kBlockRows;
  const Partials partials = {args.partial_outputs, args.partial_states};
  for (int item = threadIdx.x; item < items; item += Shape::kThreads) {
    const int row = item / kQuads;
    const int dim = item % kQuads * 4;
    partials.put(merge_warps<Shape>(shared, row, dim, scale_log2), first_slot + part.index * Shape::kBlockRows + row,
                 dim, Shape::kHeadDim);
  }
  if (!arrives_last(args, part)) return;

  for (int item = threadIdx.x; item < items; item += Shape::kThreads) {
    const int row = item / kQuads;
    const int dim = item % kQuads * 4;
    const auto slot = [&](int i) { return first_slot + i * Shape::kBlockRows + row; };
    const RowQuad quad = merge_quads(
        part.count, scale_log2,
        [&](int i) {
          const float2 state = __ldcg(reinterpret_cast<const float2*>(partials.states + slot(i)));
          return SoftmaxState{state.x, state.y};
        },
        [&](int i) {
          return __ldcg(reinterpret_cast<const float4*>(partials.outputs + slot(i) * Shape::kHeadDim + dim));
        });
    quad.store<T, Shape>(args, part, part.first_row + row, dim);
  }
}

// No block may write to another of its cluster before that one has started.
__device__ __forceinline__ void announce_block(const DecodeArgs& args) {
#if __CUDA_ARCH__ >= 900
  if (args.cluster) cluster_arrive();
#endif
}

// The blocks of the cluster share the quads, in turn: each sends its part of a quad into the shared memory of the block
// that merges it, and after one barrier finds all parts of its own quads there.
template <class T, class Shape>
__device__ __forceinline__ void merge_in_cluster(const DecodeArgs& args, const Part& part, unsigned char* shared,
                                                 float scale_log2) {
#if __CUDA_ARCH__ >= 900
  constexpr int kQuads = Shape::kHeadDim / 4;
  const int parts = static_cast<int>(args.parts.divisor());
  const int items = (part.end_row - part.first_row) * kQuads;
  const std::uint32_t inbox = shared_address(shared) + Shape::kInboxAt;
  const std::uint32_t inbox_states = inbox + Shape::kInboxOutputBytes;
  cluster_wait();  // every block has started
  for (int item = threadIdx.x; item < items; item += Shape::kThreads) {
    const int row = item / kQuads;
    const RowQuad quad = merge_warps<Shape>(shared, row, item % kQuads * 4, scale_log2);
    const int turn = static_cast<int>(args.parts.quotient(item));
    store_cluster_16b(cluster_address(inbox + (turn * parts + part.index) * 16, item - turn * parts), quad.o);
    if (item % kQuads < parts)  // the state goes to every block
      store_cluster_8b(cluster_address(inbox_states + (part.index * Shape::kBlockRows + row) * 8, item % kQuads),
                       {quad.state.max, quad.state.sum});
  }
  cluster_arrive();
  cluster_wait();
  const auto* outputs = reinterpret_cast<const float4*>(shared + Shape::kInboxAt);
  const auto* states = reinterpret_cast<const SoftmaxState*>(shared + Shape::kInboxAt + Shape::kInboxOutputBytes);
  for (int turn = threadIdx.x, item = turn * parts + part.index; item < items;
       turn += Shape::kThreads, item += Shape::kThreads * parts) {
    const int row = item / kQuads;
    const RowQuad quad = merge_quads(
        part.count, scale_log2, [&](int i) { return states[i * Shape::kBlockRows + row]; },
        [&](int i) { return outputs[turn * parts + i]; });
    quad.store<T, Shape>(args, part, part.first_row + row, item % kQuads * 4);
  }
#endif
}

template <class T, class Shape, class WarpTile>
__device__ __forceinline__ void finish_part(const DecodeArgs& args, const Part& part, WarpTile& tile,
                                            unsigned char* shared) {
  constexpr int kQuads = Shape::kHeadDim / 4;
  const float scale_log2 = args.scale * kLog2E;
  cp_async_wait<0>();  // of keys that were copied early and do not exist
  __syncthreads();     // every warp is done with its ring, which the results overwrite
  share_warp_tile<Shape>(tile, shared);
  __syncthreads();
  if (part.count > 1)
    return args.cluster ? merge_in_cluster<T, Shape>(args, part, shared, scale_log2)
                        : merge_in_global_memory<T, Shape>(args, part, shared, scale_log2);
  for (int item = threadIdx.x; item < (part.end_row - part.first_row) * kQuads; item += Shape::kThreads) {
    const int row = item / kQuads;
    const int dim = item % kQuads * 4;
    merge_warps<Shape>(shared, row, dim, scale_log2).template store<T, Shape>(args, part, part.first_row + row, dim);
  }
}

}  // namespace inferometer::decode
