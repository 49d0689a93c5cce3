// attention_prefill / flash_sm80, the kernel: FlashAttention forward on mma.sync.
//
// A thread block computes a tile of queries of one head, a warp kRowTiles x 16 of its rows, against all keys they see,
// kTileKv at a time. Scores and probabilities never leave registers: the accumulator of S = Q K^T has the layout of the
// A operand of P V. Keys and values come through two stages of shared memory, copied (cp.async) while the stage
// before is used; a second thread block on the same SM keeps the tensor cores busy during this one's exponentials.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm80_params.hpp"
#include "kernels/attention_prefill/online_softmax.cuh"
#include "kernels/attention_prefill/visible_keys.cuh"
#include "kernels/common/half_ops.cuh"
#include "kernels/common/swizzled_tile.cuh"
#include "kernels/ptx/cp_async.cuh"
#include "kernels/ptx/ldmatrix.cuh"
#include "kernels/ptx/mma.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer {

// kHeadDim: of the tiles, at least the problem's; the rest is zero. kQueriesInRegisters: otherwise Q's fragments are
// read from shared memory at each step. kBlocksPerSm: with 2 blocks of 128 threads the compiler may use the 255
// registers a thread can have.
template <class T_, int kHeadDim_, int kWarps_, int kRowTiles_, int kTileKv_, bool kQueriesInRegisters_,
          int kBlocksPerSm_>
struct FlashConfig {
  using T = T_;
  using Tile = SwizzledTile<kHeadDim_>;
  static constexpr int kThreads = kWarps_ * 32;
  static constexpr int kRowTiles = kRowTiles_;
  static constexpr int kWarpRows = kRowTiles_ * 16;
  static constexpr int kTileQ = kWarps_ * kWarpRows;
  static constexpr int kTileKv = kTileKv_;
  static constexpr int kKeyTiles = kTileKv_ / 8;    // of 8 columns of S
  static constexpr int kDimSteps = kHeadDim_ / 16;  // of 16 columns of Q, K and V
  static constexpr bool kQueriesInRegisters = kQueriesInRegisters_;
  static constexpr int kBlocksPerSm = kBlocksPerSm_;
  static constexpr int kTileQBytes = kTileQ * Tile::kRowBytes;
  static constexpr int kTileKvBytes = kTileKv * Tile::kRowBytes;
  static constexpr int kSharedBytes = kTileQBytes + 4 * kTileKvBytes;
};

// How threads share the copy of a tile: 16 bytes a thread and instruction, at a place that is fixed per thread.
template <class Config>
struct TileCopy {
  using T = typename Config::T;
  using Tile = typename Config::Tile;
  static constexpr int kChunksAtOnce = Tile::kWholeLines ? 8 : 4;  // 128 or 64 contiguous bytes of a row
  static constexpr int kRowsAtOnce = Config::kThreads / kChunksAtOnce;
  static_assert(kRowsAtOnce % 8 == 0);  // a step down keeps the swizzle's key

  __device__ static int row() { return static_cast<int>(threadIdx.x) / kChunksAtOnce; }
  __device__ static int column() { return static_cast<int>(threadIdx.x) % kChunksAtOnce * 8; }

  // Starts copying kRows rows of a matrix [rows, head_dim] whose element [row()][column()] is at `from`; rows and
  // columns past its end become zero.
  template <int kRows>
  __device__ __forceinline__ static void start(std::uint32_t tile, const T* from, std::int64_t stride, int rows,
                                               int head_dim) {
    static_assert(kRows % kRowsAtOnce == 0);
    const std::uint32_t dst = tile + Tile::offset(row(), column() / 8);
#pragma unroll
    for (int r = 0; r < kRows; r += kRowsAtOnce) {
#pragma unroll
      for (int c = 0; c < Tile::kChunks; c += kChunksAtOnce)
        cp_async_16b_zfill(dst + r * Tile::kRowBytes + c * 16, from + c * 8,
                           row() + r < rows && column() + c * 8 < head_dim);
      from += kRowsAtOnce * stride;
    }
  }
};

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

// Where a thread block works. Kept in shared memory and read where needed: the loop needs the registers.
struct BlockPlace {
  std::int64_t q_offset;    // of the tile's first element in q and o
  std::int64_t lse_offset;  // of its first row in lse
  std::int64_t kv_offset;   // of the first key's element in k and v
  int first_query;
  int queries;   // of the tile, less than its rows at the end
  int last_key;  // that any of its queries sees; negative: none
};

__device__ inline BlockPlace block_place(const FlashParams& p, int tile_queries) {
  const QueryTile tile = p.schedule.tile(static_cast<int>(blockIdx.x));
  const std::int64_t batch = tile.head / p.q_heads;
  const std::int64_t head = tile.head % p.q_heads;
  BlockPlace place;
  place.first_query = tile.index * tile_queries;
  place.queries = min(tile_queries, p.q_len - place.first_query);
  place.last_key = p.visible.last(place.first_query + place.queries - 1);
  place.q_offset = (batch * p.q_len + place.first_query) * p.q_stride + head * p.head_dim;
  place.lse_offset = std::int64_t{tile.head} * p.q_len + place.first_query;
  place.kv_offset = batch * p.visible.kv_len * p.kv_stride + head / p.heads_per_kv * p.head_dim;
  return place;
}

template <class Config>
__global__ void __launch_bounds__(Config::kThreads, Config::kBlocksPerSm) flash_sm80_kernel(const FlashParams p) {
  using T = typename Config::T;
  using Tile = typename Config::Tile;
  using Copy = TileCopy<Config>;

  extern __shared__ __align__(128) unsigned char shared[];
  const std::uint32_t q_tile = shared_address(shared);
  const std::uint32_t k_tiles = q_tile + Config::kTileQBytes;
  const std::uint32_t v_tiles = k_tiles + 2 * Config::kTileKvBytes;
  __shared__ BlockPlace place;
  if (threadIdx.x == 0) place = block_place(p, Config::kTileQ);
  __syncthreads();

  const int lane = threadIdx.x % 32;
  const int warp_row = threadIdx.x / 32 * Config::kWarpRows;

  const auto copy_kv = [&](int tile) {
    const int keys = p.visible.kv_len - tile * Config::kTileKv;
    const std::int64_t from =
        place.kv_offset + (std::int64_t{tile} * Config::kTileKv + Copy::row()) * p.kv_stride + Copy::column();
    const std::uint32_t stage = tile % 2 * Config::kTileKvBytes;
    Copy::template start<Config::kTileKv>(k_tiles + stage, static_cast<const T*>(p.k) + from, p.kv_stride, keys,
                                          p.head_dim);
    Copy::template start<Config::kTileKv>(v_tiles + stage, static_cast<const T*>(p.v) + from, p.kv_stride, keys,
                                          p.head_dim);
    cp_async_commit();
  };
  if (place.last_key >= 0) {
    const T* from = static_cast<const T*>(p.q) + place.q_offset + Copy::row() * p.q_stride + Copy::column();
    Copy::template start<Config::kTileQ>(q_tile, from, p.q_stride, place.queries, p.head_dim);
    cp_async_commit();
    copy_kv(0);
  }

  // The row that each lane gives to ldmatrix: for A fragments of Q and, transposed, B fragments of V; and for B
  // fragments of K^T, two tiles of 8 keys at once.
  const std::uint32_t v_lane = Tile::offset(lane % 16, lane / 16);
  const std::uint32_t q_lane = q_tile + warp_row * Tile::kRowBytes + v_lane;
  const std::uint32_t k_lane = Tile::offset(lane / 16 * 8 + lane % 8, lane / 8 % 2);

  std::uint32_t q[Config::kQueriesInRegisters ? Config::kDimSteps : 1][Config::kRowTiles][4];
  if constexpr (Config::kQueriesInRegisters) {
    cp_async_wait<1>();
    __syncthreads();
#pragma unroll
    for (int d = 0; d < Config::kDimSteps; ++d) load_query_fragments<Config>(q[d], q_lane, d);
  }

  OnlineSoftmax<Config::kRowTiles> softmax(p.scale);
  float acc[Config::kRowTiles][2 * Config::kDimSteps][4] = {};
  const int last_key = place.last_key;
  const int warp_query = place.first_query + warp_row;
  for (int tile = 0; tile * Config::kTileKv <= last_key; ++tile) {
    cp_async_wait<0>();
    __syncthreads();  // this stage is complete, and nobody still reads the other one
    const int first_key = tile * Config::kTileKv;
    if (first_key + Config::kTileKv <= last_key) copy_kv(tile + 1);

    if (first_key > p.visible.last(warp_query + Config::kWarpRows - 1)) continue;  // above the diagonal for this warp
    const std::uint32_t stage = tile % 2 * Config::kTileKvBytes;
    float s[Config::kRowTiles][Config::kKeyTiles][4] = {};
    scores<Config>(s, q, q_lane, k_tiles + stage + k_lane);
    if (first_key + Config::kTileKv - 1 > p.visible.last(warp_query))
      mask<Config>(s, p.visible, warp_query + lane / 4, first_key + lane % 4 * 2);
    softmax.follow(s, acc);
    std::uint32_t probabilities[Config::kRowTiles][Config::kKeyTiles][2];
    softmax.template exponentials<T>(s, probabilities);
    accumulate<Config>(acc, probabilities, v_tiles + stage + v_lane);
  }

  // O / sum, through this warp's own rows of the query tile, so that global stores are 16 bytes wide.
  __syncwarp();
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
  T* o = static_cast<T*>(p.o) + place.q_offset;
  for (int piece = lane; piece < Config::kWarpRows * Tile::kChunks; piece += 32) {
    const int row = warp_row + piece / Tile::kChunks;
    const int chunk = piece % Tile::kChunks;
    if (row < place.queries && chunk * 8 < p.head_dim)
      *reinterpret_cast<uint4*>(o + row * p.q_stride + chunk * 8) =
          *reinterpret_cast<const uint4*>(shared + Tile::offset(row, chunk));
  }
}

}  // namespace inferometer
