// The device side of new_tokens.hpp.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/attention_decode/decode_args.cuh"
#include "kernels/attention_decode/new_tokens.hpp"
#include "kernels/attention_decode/part.cuh"
#include "kernels/attention_decode/partition.hpp"
#include "kernels/attention_decode/row_map.cuh"
#include "kernels/attention_decode/tile_stream.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/matmul/product_ends.cuh"
#include "kernels/ptx/ld_shared.cuh"
#include "kernels/ptx/st_shared.cuh"

namespace inferometer::decode {

// The heads of a block's new token, turned, in shared memory: those of its queries, then its key and its value where
// the block has the newest key. A head is a warp's work: a lane has elements 2 lane, 2 lane + 1 of both halves, and so
// both elements of each pair that RoPE turns.
template <class Shape>
class NewHeads {
  static constexpr int kHalfDim = Shape::kHeadDim / 2;
  static constexpr int kMostHeads = Shape::kBlockRows + 2;
  static constexpr int kTurns = (kMostHeads + Shape::kWarps - 1) / Shape::kWarps;  // heads of a warp
  // 16 bytes more than a head: rows that a warp reads at once lie in different banks.
  static constexpr int kPitch = Shape::kHeadDim * 2 + 16;
  static_assert(kHalfDim <= 64);

 public:
  static constexpr int kBytes = (kMostHeads * kPitch + 127) / 128 * 128;

  // Asks for what was there before the product.
  __device__ __forceinline__ NewHeads(const DecodeArgs& args, const NewTokens& tokens, const Part& part, int warp,
                                      std::uint32_t shared)
      : args_(args), tokens_(tokens), part_(part), warp_(warp), shared_(shared), queries_(part.end_row) {
    newest_warp_ = newest_key_warp(part.first_key, part.end_key, part.length, Shape::kTileKeys, Shape::kWarps);
    const int position = max(part.length - 1, 0);  // of a sequence without tokens, which pads a step: any
    if (has_elements())
      turns_ = __ldg(reinterpret_cast<const float4*>(tokens.turns + std::int64_t{position} * kHalfDim) + lane());
    if (newest_warp_ != warp) return;
    const RowMap rows(args, part.sequence, part.kv_head);
    const std::uint32_t block = rows.is_paged() ? static_cast<std::uint32_t>(__ldg(rows.table_entry(position))) : 0;
    row_ = rows.row(position, block);
  }

  // Turns the block's heads; they are in their place after the next __syncthreads().
  __device__ __forceinline__ void turn_all() const {
    const int heads = queries_ + (newest_warp_ >= 0 ? 2 : 0);
    std::uint32_t low[kTurns];
    std::uint32_t high[kTurns];
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {  // all loads are under way together
      const int head = warp_ + i * Shape::kWarps;
      low[i] = high[i] = 0;
      if (head >= heads || !has_elements()) continue;
      const auto* const words = reinterpret_cast<const unsigned int*>(
          tokens_.qkv + (std::int64_t{part_.sequence} * heads_of_token() + place(head)) * Shape::kHeadDim);
      low[i] = __ldcg(words + lane());  // past the L1: no other warp of this SM reads it
      high[i] = __ldcg(words + kHalfDim / 2 + lane());
    }
    const bool keeps_norm = part_.index == 0 && part_.kv_head == 0 && warp_ == 0;
    const float factor = late_norm_factor(tokens_.norm, part_.sequence, keeps_norm);
#pragma unroll
    for (int i = 0; i < kTurns; ++i) {
      const int head = warp_ + i * Shape::kWarps;
      if (head < heads) turn(head, unpack_pair<__half>(low[i]), unpack_pair<__half>(high[i]), factor);
    }
  }

  // Elements 8 group + 2 (lane % 4) and the next of query row `row`.
  __device__ __forceinline__ std::uint32_t query_pair(int row, int group) const {
    return load_shared_4b(shared_ + min(row, queries_ - 1) * kPitch + group * 16 + lane() % 4 * 4);
  }

  // The newest key and value take their place in a tile that begins at first_key, if it is theirs: in shared memory,
  // where the copy of what the slot held has arrived, and in the cache.
  __device__ __forceinline__ void put_newest(std::uint32_t tile, int first_key) const {
    const int key = part_.length - 1 - first_key;
    if (warp_ != newest_warp_ || key >= Shape::kTileKeys) return;
    if (has_elements()) {
      put(tile, key, queries_, tokens_.k, args_.k_row_bytes);
      put(tile + Shape::kTileBytes, key, queries_ + 1, tokens_.v, args_.v_row_bytes);
    }
    __syncwarp();
  }

 private:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  __device__ static bool has_elements() { return lane() < kHalfDim / 2; }

  __device__ int heads_of_token() const { return args_.kv_heads * (static_cast<int>(args_.group.divisor()) + 2); }
  // Of one of the block's heads among the token's.
  __device__ int place(int head) const {
    const auto group = static_cast<int>(args_.group.divisor());
    if (head < queries_) return part_.kv_head * group + head;
    return args_.kv_heads * (group + head - queries_) + part_.kv_head;
  }

  __device__ static float2 pair_of(const __half* row, int i) {
    return unpack_pair<__half>(__ldg(reinterpret_cast<const unsigned int*>(row) + i));
  }
  __device__ static float2 scaled(float2 x, float factor) { return {x.x * factor, x.y * factor}; }
  __device__ static float2 scaled_and_biased(float2 x, float factor, float2 bias) {
    return {x.x * factor + bias.x, x.y * factor + bias.y};
  }
  __device__ static float2 scaled_by_gain(float2 x, float factor, float2 gain) {
    return {x.x * factor * gain.x, x.y * factor * gain.y};
  }

  // The arithmetic, and its order, is rope_append's. The warp calls.
  __device__ __forceinline__ void turn(int head, float2 a, float2 b, float factor) const {
    const bool is_v = head > queries_;
    if (tokens_.bias != nullptr && has_elements()) {
      const __half* const bias = tokens_.bias + std::int64_t{place(head)} * Shape::kHeadDim;
      a = scaled_and_biased(a, factor, pair_of(bias, lane()));
      b = scaled_and_biased(b, factor, pair_of(bias, kHalfDim / 2 + lane()));
    } else {
      a = scaled(a, factor);
      b = scaled(b, factor);
    }
    if (!is_v && tokens_.q_gain != nullptr) {  // RMSNorm of the head
      const float2 square = {a.x * a.x + b.x * b.x, a.y * a.y + b.y * b.y};
      float squares = square.x + square.y;
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) squares += __shfl_xor_sync(kAllLanes, squares, distance);
      const float inverse = rsqrtf(squares / static_cast<float>(Shape::kHeadDim) + tokens_.eps);
      const __half* const gain = head < queries_ ? tokens_.q_gain : tokens_.k_gain;
      if (has_elements()) {
        a = scaled_by_gain(a, inverse, pair_of(gain, lane()));
        b = scaled_by_gain(b, inverse, pair_of(gain, kHalfDim / 2 + lane()));
      }
    }
    if (!has_elements()) return;
    const float4 t = turns_;
    const float2 low = is_v ? a : float2{a.x * t.x - b.x * t.y, a.y * t.z - b.y * t.w};
    const float2 high = is_v ? b : float2{b.x * t.x + a.x * t.y, b.y * t.z + a.y * t.w};
    const std::uint32_t to = shared_ + head * kPitch + lane() * 4;
    store_word(to, pack_pair<__half>(low.x, low.y));
    store_word(to + kHalfDim * 2, pack_pair<__half>(high.x, high.y));
  }

  __device__ static void store_word(std::uint32_t to, std::uint32_t word) {
    store_shared_4b(to, __uint_as_float(word));
  }

  __device__ __forceinline__ void put(std::uint32_t tile, int key, int head, __half* cache,
                                      std::int64_t row_bytes) const {
    const std::uint32_t from = shared_ + head * kPitch + lane() * 4;
    const std::uint32_t low = load_shared_4b(from);
    const std::uint32_t high = load_shared_4b(from + kHalfDim * 2);
    const std::uint32_t within = lane() % 4 * 4;
    store_word(tile + Shape::Tile::offset(key, lane() / 4) + within, low);
    store_word(tile + Shape::Tile::offset(key, lane() / 4 + kHalfDim / 8) + within, high);
    char* const slot =
        reinterpret_cast<char*>(cache) + row_ * row_bytes + std::int64_t{part_.kv_head} * args_.head_bytes;
    reinterpret_cast<std::uint32_t*>(slot)[lane()] = low;
    reinterpret_cast<std::uint32_t*>(slot)[lane() + kHalfDim / 2] = high;
  }

  const DecodeArgs& args_;
  const NewTokens& tokens_;
  const Part& part_;
  int warp_;
  std::uint32_t shared_;
  int queries_;            // query heads of the KV head
  int newest_warp_;        // that has the newest key's tile; -1: not this block's
  std::uint32_t row_ = 0;  // of the cache, in that warp
  float4 turns_ = {};      // cosines and sines of elements 2 lane, 2 lane + 1
};

}  // namespace inferometer::decode
