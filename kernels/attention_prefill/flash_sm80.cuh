// attention_prefill / flash_sm80, the kernel: FlashAttention forward on mma.sync.
//
// A thread block computes a tile of queries of one head, a warp kRowTiles x 16 of its rows, against all keys they see,
// kTileKv at a time. Scores and probabilities never leave registers: the accumulator of S = Q K^T has the layout of the
// A operand of P V. Keys and values come through two stages of shared memory, copied (cp.async) while the stage
// before is used; a second thread block on the same SM keeps the tensor cores busy during this one's exponentials. Or,
// where a block is alone on its SM, more stages with barriers of their own let its warps be at different tiles.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm80_config.cuh"
#include "kernels/attention_prefill/flash_sm80_copy.cuh"
#include "kernels/attention_prefill/flash_sm80_place.cuh"
#include "kernels/attention_prefill/online_softmax.cuh"
#include "kernels/attention_prefill/visible_keys.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/cp_async_barrier.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer {

template <class Config>
__device__ __forceinline__ void load_query_fragments(std::uint32_t (&a)[Config::kRowTiles][4], std::uint32_t q_lane,
                                                     int d) {
#pragma unroll
  for (int m = 0; m < Config::kRowTiles; ++m)
    ldmatrix_x4(a[m], Config::Tile::step(q_lane, d) + m * 16 * Config::Tile::kRowBytes);
}

// S = Q K^T  [kWarpRows, kTileKv]
template <class Config>
__device__ __forceinline__ void scores(float (&s)[Config::kRowTiles][Config::kKeyTiles][4],
                                       std::uint32_t (*q)[Config::kRowTiles][4], std::uint32_t q_lane,
                                       std::uint32_t k_lane) {
  using Tile = typename Config::Tile;
#pragma unroll
  for (int d = 0; d < Config::kDimSteps; ++d) {
    auto& a = q[Config::kQueriesInRegisters ? d : 0];
    if constexpr (!Config::kQueriesInRegisters) load_query_fragments<Config>(a, q_lane, d);
#pragma unroll
    for (int n = 0; n < Config::kKeyTiles; n += 2) {
      std::uint32_t b[4];
      ldmatrix_x4(b, Tile::step(k_lane, d) + n * 8 * Tile::kRowBytes);
#pragma unroll
      for (int m = 0; m < Config::kRowTiles; ++m) {
        mma_m16n8k16<typename Config::T>(s[m][n], a[m], b[0], b[1]);
        mma_m16n8k16<typename Config::T>(s[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// O += P V  [kWarpRows, head_dim]
template <class Config>
__device__ __forceinline__ void accumulate(float (&acc)[Config::kRowTiles][2 * Config::kDimSteps][4],
                                           const std::uint32_t (&p)[Config::kRowTiles][Config::kKeyTiles][2],
                                           std::uint32_t v_lane) {
  using Tile = typename Config::Tile;
#pragma unroll
  for (int n = 0; n < Config::kKeyTiles; n += 2) {
#pragma unroll
    for (int d = 0; d < Config::kDimSteps; ++d) {
      std::uint32_t b[4];
      ldmatrix_x4_trans(b, Tile::step(v_lane, d) + n * 8 * Tile::kRowBytes);
#pragma unroll
      for (int m = 0; m < Config::kRowTiles; ++m) {
        const std::uint32_t a[4] = {p[m][n][0], p[m][n][1], p[m][n + 1][0], p[m][n + 1][1]};
        mma_m16n8k16<typename Config::T>(acc[m][2 * d], a, b[0], b[1]);
        mma_m16n8k16<typename Config::T>(acc[m][2 * d + 1], a, b[2], b[3]);
      }
    }
  }
}

// Scores of keys a query does not see become -infinity. `query` and `key` are of this thread's s[0][0][0].
template <class Config>
__device__ __forceinline__ void mask(float (&s)[Config::kRowTiles][Config::kKeyTiles][4], const VisibleKeys& visible,
                                     int query, int key) {
#pragma unroll
  for (int m = 0; m < Config::kRowTiles; ++m)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int last = visible.last(query + m * 16 + i / 2 * 8);
#pragma unroll
      for (int n = 0; n < Config::kKeyTiles; ++n)
        if (key + n * 8 + i % 2 > last) s[m][n][i] = -kInfinity;
    }
}

// Scores of keys before a query's window become -infinity.
template <class Config>
__device__ __forceinline__ void mask_window(float (&s)[Config::kRowTiles][Config::kKeyTiles][4],
                                            const VisibleKeys& visible, int query, int key) {
#pragma unroll
  for (int m = 0; m < Config::kRowTiles; ++m)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int first = visible.first(query + m * 16 + i / 2 * 8);
#pragma unroll
      for (int n = 0; n < Config::kKeyTiles; ++n)
        if (key + n * 8 + i % 2 < first) s[m][n][i] = -kInfinity;
    }
}

// A score s becomes c tanh(s / c). Not tanh.approx, whose relative error of 2^-11 is too much of a score of 50.
template <class Config>
__device__ __forceinline__ void cap_scores(float (&s)[Config::kRowTiles][Config::kKeyTiles][4], float cap,
                                           float inverse_cap) {
#pragma unroll
  for (int m = 0; m < Config::kRowTiles; ++m)
#pragma unroll
    for (int n = 0; n < Config::kKeyTiles; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i) s[m][n][i] = cap * tanhf(s[m][n][i] * inverse_cap);
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm)
    flash_sm80_kernel(const typename Config::Params p) {
  using T = typename Config::T;
  using Tile = typename Config::Tile;
  using Copy = TileCopy<Config>;

  extern __shared__ __align__(128) unsigned char shared[];
  const std::uint32_t base = shared_address(shared);
  const std::uint32_t q_tile = base + (Config::kLoose ? Config::kStagesBytes - Config::kTileQBytes : 0);
  const std::uint32_t k_tiles = base + (Config::kLoose ? 0 : Config::kTileQBytes);
  const std::uint32_t v_tiles = k_tiles + Config::kValuesAt;
  // A stage's copies are complete; everyone is done with it.
  __shared__ std::uint64_t barriers[Config::kLoose ? 2 * Config::kStages : 1];
  const std::uint32_t full = shared_address(barriers);
  const std::uint32_t empty = full + 8 * Config::kStages;
  if constexpr (Config::kLoose) {
    if (threadIdx.x == 0)
      for (int i = 0; i < 2 * Config::kStages; ++i) stage_barrier_init(full + 8 * i, Config::kThreads);
  }
  using Place = decltype(block_place(p, Config::kTileQ));
  __shared__ Place place;
  if (threadIdx.x == 0) place = block_place(p, Config::kTileQ);
  __syncthreads();
  if constexpr (Config::kGeneral) {
    if (place.queries <= 0) return;
  }

  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * Config::kWarpRows;

  const auto copy_kv = [&](int tile, int to) {  // `to`: loose, the stage
    const std::uint32_t stage = (Config::kLoose ? to : tile % 2) * Config::kStageBytes;
    if constexpr (Config::kGeneral) {
      const T* const k = static_cast<const T*>(p.k) + place.kv_offset + Copy::column();
      const KeyRows<Config> rows(tile * Config::kTileKv, place.kv_len, place.blocks, p.block_size);
      rows.start(k_tiles + stage, k, p.kv_stride, p.head_dim);
      rows.start(v_tiles + stage, static_cast<const T*>(p.v) + place.v_offset + Copy::column(), p.v_stride, p.v_dim);
    } else {
      const int keys = p.visible.kv_len - tile * Config::kTileKv;
      const std::int64_t from =
          place.kv_offset + (std::int64_t{tile} * Config::kTileKv + Copy::row()) * p.kv_stride + Copy::column();
      Copy::template start<Config::kTileKv>(k_tiles + stage, static_cast<const T*>(p.k) + from, p.kv_stride, keys,
                                            p.head_dim);
      Copy::template start<Config::kTileKv>(v_tiles + stage, static_cast<const T*>(p.v) + from, p.kv_stride, keys,
                                            p.head_dim);
    }
    if constexpr (Config::kLoose) {
      stage_barrier_arrive_copied(full + 8 * to);
    } else {
      cp_async_commit();
    }
  };
  const int first_tile = first_key(place) / Config::kTileKv;
  if (place.last_key >= 0) {
    const T* from = static_cast<const T*>(p.q) + place.q_offset + Copy::row() * p.q_stride + Copy::column();
    Copy::template start<Config::kTileQ>(q_tile, from, p.q_stride, place.queries, p.head_dim);
    cp_async_commit();
    copy_kv(first_tile, 0);
  }

  // The row that each lane gives to ldmatrix: for A fragments of Q and, transposed, B fragments of V; and for B
  // fragments of K^T, two tiles of 8 keys at once.
  const std::uint32_t v_lane = Tile::offset(lane % 16, lane / 16);
  const std::uint32_t q_lane = q_tile + warp_row * Tile::kRowBytes + v_lane;
  const std::uint32_t k_lane = Tile::offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);

  std::uint32_t q[Config::kQueriesInRegisters ? Config::kDimSteps : 1][Config::kRowTiles][4];
  if constexpr (Config::kQueriesInRegisters) {
    cp_async_wait<Config::kLoose ? 0 : 1>();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < Config::kDimSteps; ++d) load_query_fragments<Config>(q[d], q_lane, d);
    if constexpr (Config::kLoose) __syncthreads();  // keys go there next
  }

  OnlineSoftmax<Config::kRowTiles> softmax(p.scale);
  float acc[Config::kRowTiles][2 * Config::kDimSteps][4] = {};
  const int last_key = place.last_key;
  const int warp_query = place.first_query + warp_row;
  const VisibleKeys visible = visible_keys(p, place);
  int stage = 0;             // loose: of the tile
  std::uint32_t parity = 0;  // and of the use of that stage
  for (int tile = first_tile; tile * Config::kTileKv <= last_key; ++tile) {
    const int key = tile * Config::kTileKv;
    const int here = Config::kLoose ? stage : tile % 2;
    if constexpr (Config::kLoose) {
      stage = stage + 1 == Config::kStages ? 0 : stage + 1;
      const std::uint32_t parity_here = parity;
      if (stage == 0) parity ^= 1;
      if (key + Config::kTileKv <= last_key) {
        stage_barrier_wait(empty + 8 * stage, parity ^ 1);
        copy_kv(tile + 1, stage);
      }
      stage_barrier_wait(full + 8 * here, parity_here);
    } else {
      cp_async_wait<0>();
      __syncthreads();  // this stage is complete, and nobody still reads the other one
      if (key + Config::kTileKv <= last_key) copy_kv(tile + 1, 0);
    }
    const auto release = [&] {
      if constexpr (Config::kLoose) stage_barrier_arrive(empty + 8 * here);
    };

    if (key > visible.last(warp_query + Config::kWarpRows - 1)) {  // above the diagonal for this warp
      release();
      continue;
    }
    if constexpr (Config::kGeneral) {
      if (key + Config::kTileKv <= visible.first(warp_query)) {  // before the window
        release();
        continue;
      }
    }
    const std::uint32_t at = here * Config::kStageBytes;
    float s[Config::kRowTiles][Config::kKeyTiles][4] = {};
    scores<Config>(s, q, q_lane, k_tiles + at + k_lane);
    if constexpr (Config::kGeneral) {
      if (p.cap > 0.0F) cap_scores<Config>(s, p.cap, p.inverse_cap);
      if (key < visible.first(warp_query + Config::kWarpRows - 1))
        mask_window<Config>(s, visible, warp_query + lane / 4, key + lane % 4 * 2);
    }
    if (key + Config::kTileKv - 1 > visible.last(warp_query))
      mask<Config>(s, visible, warp_query + lane / 4, key + lane % 4 * 2);
    softmax.follow(s, acc);
    std::uint32_t probabilities[Config::kRowTiles][Config::kKeyTiles][2];
    softmax.template exponentials<T>(s, probabilities);
    accumulate<Config>(acc, probabilities, v_tiles + at + v_lane);
    release();
  }

  // O / sum, through this warp's own rows of the query tile, so that global stores are 16 bytes wide.
  if constexpr (Config::kLoose) {
    __syncthreads();  // these rows may lie over keys that others still read
  } else {
    __syncwarp();
  }
#pragma unroll
  for (int r = 0; r < softmax.kRows; ++r) {
    const float sum = softmax.total(r);
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    const int row = warp_row + r * 8 + lane / 4;
#pragma unroll
    for (int n = 0; n < 2 * Config::kDimSteps; ++n)
      *reinterpret_cast<std::uint32_t*>(shared + Tile::offset(row, n) + lane % 4 * 4) =
          pack_pair<T>(acc[r / 2][n][r % 2 * 2] * inverse, acc[r / 2][n][r % 2 * 2 + 1] * inverse);
    if (lane % 4 == 0 && row < place.queries) p.lse[place.lse_offset + row] = softmax.log_sum_exp(r, sum);
  }
  __syncwarp();
  T* const o = static_cast<T*>(p.o) + output_offset(place);
  for (int piece = lane; piece < Config::kWarpRows * Tile::kChunks; piece += 32) {
    const int row = warp_row + piece / Tile::kChunks;
    const int chunk = piece % Tile::kChunks;
    if (row < place.queries && chunk * 8 < output_dim(p))
      *reinterpret_cast<uint4*>(o + row * output_stride(p) + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared + Tile::offset(row, chunk));
  }
}

}  // namespace inferometer
