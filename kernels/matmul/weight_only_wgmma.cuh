// Y = X W^T for more than a few tokens and packed weights of 8 or 4 bits (packing.hpp) on Hopper's tensor cores.
//
//   in   x  [m, k]  w  [n, k] packed, scales, zero points     f16 or bf16 around the codes
//   out  y  [m, n]                                            accumulated in f32, rounded once
//
// Y^T = W X^T: W is wgmma's A, in registers, since it has to pass through them anyway, and X its B, in shared memory as
// the copy engine leaves it. So a weight is converted once for all tokens of a tile, and nothing converted is stored.
// A weight times its scale is rounded once to the type of X. Four warps copy slices in turn; of four warpgroups some
// multiply while the others convert. Where tiles are few, warpgroups of a block share a band of 64 rows, and blocks of
// a cluster a tile, each with its slices of k; they add up in their order: the result is the same bit for bit.
#pragma once

#include <cstdint>

#include "kernels/common/half_ops.cuh"
#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/matmul/packing.hpp"
#include "kernels/matmul/weight_only_args.hpp"
#include "kernels/matmul/weight_only_fragment.cuh"
#include "kernels/matmul/weight_only_wgmma_shape.hpp"
#include "kernels/matmul/work_split.cuh"
#include "kernels/ptx/bulk_copy.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"
#include "kernels/ptx/stmatrix.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// The block's share of one tile of Y.
struct WgmmaTile {
  int row_tile;
  int token_tile;
  int first_slice;
  int slices;

  template <class T>
  __device__ WgmmaTile(const WeightOnlyWgmmaArgs<T>& args, int index, int part) {
    const TileIndex tile = tile_in_order(index, args.token_tiles, args.row_tiles, args.order_band);
    token_tile = static_cast<int>(tile.m);
    row_tile = static_cast<int>(tile.n);
    const std::int64_t all_slices = args.weights.shape.slices();
    first_slice = static_cast<int>(all_slices * part / args.parts);
    slices = static_cast<int>(all_slices * (part + 1) / args.parts) - first_slice;
  }
};

// The barriers of the stages: `full` of each, then `empty` of each.
template <class Shape>
__device__ void init_barriers(std::uint32_t shared) {
  const std::uint32_t barriers = shared + Shape::kBarriersAt;
  for (int s = 0; s < Shape::kStages; ++s) {
    mbarrier_init(barriers + s * 8, 1);
    mbarrier_init(barriers + (Shape::kStages + s) * 8, Shape::kBands * 4);  // a warpgroup for each band reads a stage
  }
  mbarrier_init_fence();
}

// Every kStride-th slice of the block's tiles, from `first` on, and the stages they go through in turn. kStride divides
// the number of stages, so that a stage is always filled by the same warp and read by the same warpgroups: one that ran
// ahead of another through the same stage could not tell from a barrier's parity that the other has yet to come.
template <class Shape, int kStride>
class SlicesInTurn {
  static_assert(Shape::kStages % kStride == 0);

 public:
  __device__ SlicesInTurn(std::uint32_t shared, int first)
      : stage_(shared + first * Shape::kStageBytes),
        barrier_(shared + Shape::kBarriersAt + first * 8),
        index_(first),
        slice_(first) {}

  // Of the current tile; at or past the tile's end when the next one is of a later tile.
  __device__ __forceinline__ int slice() const { return slice_; }
  __device__ __forceinline__ std::uint32_t stage() const { return stage_; }
  __device__ __forceinline__ std::uint32_t full() const { return barrier_; }
  __device__ __forceinline__ void wait_full() const { mbarrier_wait(barrier_, phase_); }
  __device__ __forceinline__ void wait_empty() const { mbarrier_wait(barrier_ + kEmptyAt, phase_ ^ 1); }
  __device__ __forceinline__ void release() const { mbarrier_arrive(barrier_ + kEmptyAt); }

  __device__ __forceinline__ void next() {
    slice_ += kStride;
    index_ += kStride;
    stage_ += kStride * Shape::kStageBytes;
    barrier_ += kStride * 8;
    if (index_ < Shape::kStages) return;
    index_ -= Shape::kStages;
    stage_ -= Shape::kStages * Shape::kStageBytes;
    barrier_ -= Shape::kStages * 8;
    phase_ ^= 1;
  }
  // From a tile of `slices` slices to the next.
  __device__ __forceinline__ void next_tile(int slices) { slice_ -= slices; }

 private:
  static constexpr int kEmptyAt = Shape::kStages * 8;

  std::uint32_t stage_;
  std::uint32_t barrier_;
  int index_;
  int slice_;
  std::uint32_t phase_ = 0;
};

template <class Shape>
using CopiedSlices = SlicesInTurn<Shape, WeightOnlyWgmmaShape::kCopyWarps>;
template <class Shape>
using MultipliedSlices = SlicesInTurn<Shape, Shape::kWays>;

// A copying warp's slices of a tile: X and the packed tiles of W, which are contiguous. One thread calls.
template <class T, class Shape>
__device__ __forceinline__ void copy_slices(const WeightOnlyWgmmaArgs<T>& args, const CUtensorMap* x,
                                            const WgmmaTile& tile, CopiedSlices<Shape>& turn) {
  constexpr int kTiles = Shape::kBands * kBandTiles;
  const PackedShape& shape = args.weights.shape;
  const std::int64_t first_tile = std::int64_t{tile.row_tile} * kTiles;
  const auto tiles = static_cast<int>(min(shape.row_tiles() - first_tile, std::int64_t{kTiles}));
  const std::uint32_t bytes = tiles * shape.tile_bytes();
  const unsigned char* const weights = args.weights.tiles + shape.tile_at(first_tile, tile.first_slice);
  const auto slice_bytes = static_cast<std::uint32_t>(shape.tile_at(first_tile, 1) - shape.tile_at(first_tile, 0));
  for (; turn.slice() < tile.slices; turn.next()) {
    turn.wait_empty();
    mbarrier_arrive_expect_bytes(turn.full(), Shape::kXBytes + bytes);
    bulk_load(turn.stage() + Shape::kXBytes, weights + std::int64_t{turn.slice()} * slice_bytes, bytes, turn.full());
    tma_load_2d(turn.stage(), x, turn.full(), (tile.first_slice + turn.slice()) * kSliceK,
                tile.token_tile * Shape::kTokens);
  }
  turn.next_tile(tile.slices);
}

// What a thread reads of its tile of 16 rows in a stage: its codes, and scales and zero points of its first row.
template <class T, class Shape>
class TileReader {
  using Codes = CodeForm<T, Shape::kBits>;
  using Exact = ExactCodes<T, Shape::kBits>;
  using Form = TileForm<Shape::kBits, Shape::kPlain>;
  static constexpr int kSteps = kSliceK / kStepK;

 public:
  using Fragments = std::uint32_t[kSteps][4];

  __device__ TileReader(const PackedShape& shape, int band) : form_(shape) {
    const int lane = threadIdx.x % 32;
    const int tile = Shape::kXBytes + (band * kBandTiles + threadIdx.x / 32 % kBandTiles) * form_.tile_bytes();
    places_[kCodes] = tile + lane * 16;
    places_[kScales] = tile + Form::kScalesAt + lane / 4 * sizeof(T);
    if (Shape::kPlain) pin_registers(places_);  // or they are computed anew for every slice; others lack the registers
  }

  // A = (code - zero) * scale, rounded to T, of the slice in the stage at shared address `stage`.
  __device__ __forceinline__ void convert(std::uint32_t stage, Fragments& fragments) const {
    std::uint32_t words[Shape::kBits];
    load_codes<Shape::kBits>(stage + places_[kCodes], words);
    // `kCount` steps from `kFirst` on, of the slice's group number `group`.
    const auto steps = [&]<int kFirst, int kCount>(int group) {
      const std::uint32_t at = stage + places_[kScales] + group * Form::kGroupBytes;
      const auto low = pair_of<T>(twice(load_shared_2b(at)));
      const auto high = pair_of<T>(twice(load_shared_2b(at + 8 * sizeof(T))));
      Exact exact(Codes::kMiddle, Codes::kMiddle);
      if (!form_.symmetric()) {
        const std::uint32_t zeros = stage + places_[kScales] - Form::kScalesAt + form_.zeros_at() + group * kTileRows -
                                    threadIdx.x % 32 / 4 * (sizeof(T) - 1);
        exact = Exact(load_shared_1b(zeros), load_shared_1b(zeros + 8));
      }
#pragma unroll
      for (int step = kFirst; step < kFirst + kCount; ++step) {
        std::uint32_t(&a)[4] = fragments[step];
        exact.convert(&words[step * Codes::kStepWords], a);
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = bits_of(__hmul2(pair_of<T>(a[i]), i % 2 == 0 ? low : high));
      }
    };
    if (!form_.two_groups()) {
      steps.template operator()<0, kSteps>(0);
    } else {
      steps.template operator()<0, kSteps / 2>(0);
      steps.template operator()<kSteps / 2, kSteps / 2>(1);
    }
  }

 private:
  enum : int { kCodes, kScales, kPlaces };

  Form form_;
  std::uint32_t places_[kPlaces];
};

// Warpgroups in pairs (0, 2) and (1, 3), of which one multiplies while the other converts: left to themselves all four
// drift into converting at the same time. Two pairs, so that the tensor cores have work while one pair changes over.
template <class Shape>
class Turns {
  static constexpr int kFirstBarrier = 8;
  static constexpr int kPair = 2;
  // Where tensor cores are the limit.
  static constexpr bool kTaken = Shape::kWays == 1 && Shape::kTokens >= 96;

 public:
  // Warpgroups 0 and 1 begin.
  __device__ explicit Turns(int warpgroup) : warpgroup_(warpgroup) {
    if (warpgroup >= kPair) pass();
  }
  __device__ __forceinline__ void wait() const {
    if (kTaken) named_barrier_sync(kFirstBarrier + warpgroup_, 2 * 128);
  }
  __device__ __forceinline__ void pass() const {
    if (kTaken) named_barrier_arrive(kFirstBarrier + (warpgroup_ + kPair) % (2 * kPair), 2 * 128);
  }

 private:
  int warpgroup_;
};

// A warpgroup's sums of its band, D [64, tokens].
template <class Shape>
using BandSums = float[Shape::kTokens / 2];

// sums += W[band, slices] X[:, slices]^T, of those of the tile's slices whose turn it is.
template <class T, class Shape>
__device__ __forceinline__ void multiply_slices(const TileReader<T, Shape>& reader, const Turns<Shape>& turns,
                                                int slices, MultipliedSlices<Shape>& turn, BandSums<Shape>& sums) {
  constexpr int kSteps = kSliceK / kStepK;
  for (; turn.slice() < slices; turn.next()) {
    turn.wait_full();
    typename TileReader<T, Shape>::Fragments fragments;
    reader.convert(turn.stage(), fragments);
    const std::uint64_t x = k_major_descriptor(turn.stage());
    const auto x_low = static_cast<std::uint32_t>(x);  // its address: steps of k stay within these bits
    turns.wait();
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      Wgmma<T, Shape::kTokens>::template run<BLayout::k_major>(
          sums, fragments[step], x >> 32 << 32 | (x_low + step * (kStepK * 2 / 16)), true);
    wgmma_commit();
    wgmma_wait<0>();
    turns.pass();
    if (threadIdx.x % 32 == 0) turn.release();
  }
  turn.next_tile(slices);
  pin_registers(sums);
}

// All threads of the blocks that share a tile.
__device__ __forceinline__ void meet(int parts) {
  if (parts == 1) {
    __syncthreads();
  } else {
    cluster_arrive();
    cluster_wait();
  }
}

// Rounds the sums of a quarter of the tile's tokens in one band and stores them. They go through shared memory to leave
// in rows of 128 bytes. The warpgroup calls.
template <class T, class Shape>
__device__ __forceinline__ void store_piece(const WeightOnlyWgmmaArgs<T>& args, const float* sums,
                                            const WgmmaTile& tile, int band, int quarter, unsigned char* shared) {
  constexpr int kCount = Shape::kTokens / WeightOnlyWgmmaShape::kQuarters;
  const int warpgroup = threadIdx.x / 128;
  const int warp = threadIdx.x / 32 % 4;
  const int lane = threadIdx.x % 32;
  unsigned char* const staged = shared + Shape::kStagedAt + warpgroup * Shape::kStagedBytes;
  const std::uint32_t base = shared_address(staged);
  named_barrier_sync(1 + warpgroup, 128);  // what was staged before has been read
#pragma unroll
  for (int j = 0; j < kCount / 8; ++j) {
    const int token = j * 8 + lane % 8;
    const int chunk = warp * 2 + lane / 8 % 2;  // of 8 rows of W
    stmatrix_x2_trans(base + token * 128 + (chunk ^ token % 8) * 16, pack_pair<T>(sums[4 * j], sums[4 * j + 1]),
                      pack_pair<T>(sums[4 * j + 2], sums[4 * j + 3]));
  }
  named_barrier_sync(1 + warpgroup, 128);
  const int chunk = threadIdx.x % 8;
  const int row = (tile.row_tile * Shape::kBands + band) * kBandRows + chunk * 8;
  const int first_token = tile.token_tile * Shape::kTokens + quarter * kCount;
  for (int token = threadIdx.x % 128 / 8; token < kCount; token += 16) {
    if (first_token + token >= args.m || row >= args.n) break;
    const unsigned char* from = staged + token * 128 + (chunk ^ token % 8) * 16;
    T* to = args.y + static_cast<std::int64_t>(first_token + token) * args.n + row;
    if (args.n % 8 == 0) {
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    } else {
      for (int i = 0; i < 8 && row + i < args.n; ++i) to[i] = reinterpret_cast<const T*>(from)[i];
    }
  }
}

// Where the tile's pieces go: piece (band, quarter of the tokens) belongs to one block of the cluster, and there to one
// warpgroup, which adds up its parts, one from each way of each block, and stores it.
template <class Shape>
struct PieceOwner {
  int block;
  int slot;  // among the block's pieces

  __device__ PieceOwner(int band, int quarter, int parts) {
    const int piece = band * WeightOnlyWgmmaShape::kQuarters + quarter;
    block = piece % parts;
    slot = piece / parts;
  }
};

// Those who share a tile add up and store it. The copying warps join in the meetings.
inline constexpr int kShareMeetings = 3;
template <class T, class Shape>
__device__ __forceinline__ void share_and_store(const WeightOnlyWgmmaArgs<T>& args, const WgmmaTile& tile, int part,
                                                const BandSums<Shape>& sums, unsigned char* shared) {
  constexpr int kFloats = Shape::kPieceFloats;
  constexpr int kQuarters = WeightOnlyWgmmaShape::kQuarters;
  const int warpgroup = threadIdx.x / 128;
  const int thread = threadIdx.x % 128;
  const int band = warpgroup % Shape::kBands;
  const int all_parts = args.parts * Shape::kWays;
  const int own_part = part * Shape::kWays + warpgroup / Shape::kBands;
  meet(args.parts);  // all are done with their stages, in whose place the parts arrive
#pragma unroll
  for (int quarter = 0; quarter < kQuarters; ++quarter) {
    const PieceOwner<Shape> owner(band, quarter, args.parts);
    const std::uint32_t local = shared_address(shared) + (owner.slot * all_parts + own_part) * Shape::kPartBytes;
    const std::uint32_t to = (args.parts == 1 ? local : cluster_address(local, owner.block)) + thread * 16;
#pragma unroll
    for (int i = 0; i < kFloats / 4; ++i) {
      const float* s = &sums[quarter * kFloats + 4 * i];
      store_cluster_16b(to + i * 128 * 16, make_float4(s[0], s[1], s[2], s[3]));
    }
  }
  meet(args.parts);
  for (int slot = warpgroup; slot * args.parts + part < Shape::kBands * kQuarters;
       slot += WeightOnlyWgmmaShape::kConsumers) {
    const int piece = slot * args.parts + part;
    float total[kFloats] = {};
    for (int p = 0; p < all_parts; ++p) {
#pragma unroll
      for (int i = 0; i < kFloats / 4; ++i) {
        const float4 of_part = *reinterpret_cast<const float4*>(shared + (slot * all_parts + p) * Shape::kPartBytes +
                                                                (i * 128 + thread) * 16);
        total[4 * i] += of_part.x;
        total[4 * i + 1] += of_part.y;
        total[4 * i + 2] += of_part.z;
        total[4 * i + 3] += of_part.w;
      }
    }
    store_piece<T, Shape>(args, total, tile, piece / kQuarters, piece % kQuarters, shared);
  }
  fence_async_shared();
  meet(args.parts);  // the next tile's copies take the place of the parts
}

template <int kBitCount, bool kIsPlain, int kTokenCount, int kBandCount>
struct WgmmaConfig {
  static constexpr WeightOnlyWgmmaShape kShape = {.bits = kBitCount, .tokens = kTokenCount, .bands = kBandCount};
  static constexpr int kBits = kBitCount;
  static constexpr bool kPlain = kIsPlain;
  static constexpr int kTokens = kTokenCount;
  static constexpr int kBands = kBandCount;
  static constexpr int kWays = kShape.ways();
  static constexpr int kStages = kShape.stages();
  static constexpr int kXBytes = kShape.x_bytes();
  static constexpr int kStageBytes = kShape.stage_bytes();
  static constexpr int kStagedAt = kShape.staged_at();
  static constexpr int kStagedBytes = kShape.staged_bytes();
  static constexpr int kBarriersAt = kShape.barriers_at();
  static constexpr int kPieceFloats = kShape.piece_floats();
  static constexpr int kPartBytes = kShape.part_bytes();
  static_assert(kStagedAt >= kShape.pieces() * kWays * kPartBytes, "parts arrive in place of the stages");
};

#endif

// Blocks of a cluster share a tile: blockIdx.x = tile * parts + part. Alone, a block takes every gridDim.x-th tile.
template <class T, int kBits, bool kPlain, int kTokens, int kBands>
__global__ void __launch_bounds__(WeightOnlyWgmmaShape::kThreads, 1)
    weight_only_wgmma_kernel(const __grid_constant__ WeightOnlyWgmmaArgs<T> args,
                             const __grid_constant__ CUtensorMap x) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  using Shape = WgmmaConfig<kBits, kPlain, kTokens, kBands>;
  extern __shared__ __align__(1024) unsigned char smem[];
  const int part = blockIdx.x % args.parts;
  const int tiles = args.row_tiles * args.token_tiles;
  const int step = gridDim.x / args.parts;
  if (threadIdx.x == 0) init_barriers<Shape>(shared_address(smem));
  __syncthreads();

  const int warpgroup = threadIdx.x / 128;
  const bool is_shared = Shape::kWays > 1 || args.parts > 1;
  if (warpgroup == WeightOnlyWgmmaShape::kConsumers) {
    keep_registers<Shape::kShape.copy_registers()>();
    CopiedSlices<Shape> turn(shared_address(smem), threadIdx.x / 32 % WeightOnlyWgmmaShape::kCopyWarps);
    for (int t = blockIdx.x / args.parts; t < tiles; t += step) {
      if (threadIdx.x % 32 == 0) copy_slices<T, Shape>(args, &x, WgmmaTile(args, t, part), turn);
      for (int meeting = 0; is_shared && meeting < kShareMeetings; ++meeting) meet(args.parts);
    }
  } else {
    take_registers<Shape::kShape.multiply_registers()>();
    const TileReader<T, Shape> reader(args.weights.shape, warpgroup % kBands);
    const Turns<Shape> turns(warpgroup);
    MultipliedSlices<Shape> turn(shared_address(smem), warpgroup / kBands);
    for (int t = blockIdx.x / args.parts; t < tiles; t += step) {
      const WgmmaTile tile(args, t, part);
      BandSums<Shape> sums = {};
      multiply_slices<T, Shape>(reader, turns, tile.slices, turn, sums);
      if (is_shared) {
        share_and_store<T, Shape>(args, tile, part, sums, smem);
      } else {
#pragma unroll
        for (int quarter = 0; quarter < WeightOnlyWgmmaShape::kQuarters; ++quarter)
          store_piece<T, Shape>(args, &sums[quarter * Shape::kPieceFloats], tile, warpgroup, quarter, smem);
      }
    }
  }
#endif
}

}  // namespace inferometer
