// attention_prefill / flash_sm90: a math warpgroup, which computes 64 rows of tile after tile.
//
// Per block of keys, with the products of the block before still running:
//   S = Q K^T            [64, kTileKv]  accumulators
//   P = 2^(c S - c m)    [64, kTileKv]  in two halves: the maxima of the second beside the powers of the first
//   O += P V             [64, v_dim]    accumulators; P is A, from registers
// Tiles follow without a gap: the first S of a tile is computed beside the last O += P V of the tile before.
#pragma once

#include <cfloat>
#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_params.hpp"
#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_shared.cuh"
#include "kernels/attention_prefill/row_softmax.hpp"
#include "kernels/common/half_ops.cuh"
#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/ptx/exp2.cuh"
#include "kernels/ptx/rcp.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class T, class Shape, bool kSoftCap>
class MathWarpgroup {
 public:
  __device__ MathWarpgroup(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared, int warpgroup)
      : p(params), s(shared), id(warpgroup) {}

  __device__ void run() {
    if (id == Shape::kWarpgroups - 1) pass_turn();  // the first turn is warpgroup 0's
    while (enter_tile()) {
      if (block < last_block) {
        pass_over_tile();
        continue;
      }
      begin_stream();
      do {
        while (block > last_block) next_block();
      } while (next_tile());
    }
  }

 private:
  static constexpr int kScores = Shape::kTileKv / 2;  // accumulators a thread
  static constexpr int kOutputs = Shape::kVDim / 2;
  static constexpr int kSteps = Shape::kTileKv / 16;  // of k in P V
  static constexpr int kHalf = kSteps / 2 * 8;        // of the scores: whole steps
  // Maxima and sums run in several chains a row: with few warps on an SM, the latency of one would show. Element i of S
  // belongs to row i / 2 % 2 and to chain i % kChains.
  static constexpr int kChains = 8;
  static constexpr unsigned kWholeWarp = 0xffffffffU;

  // Little is kept between blocks, and what can be is computed where needed: the loop needs the registers.
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  // This thread's first row of the 64; the second is 8 further.
  __device__ static int thread_row() { return static_cast<int>(threadIdx.x) % 128 / 32 * 16 + lane() / 4; }
  // Says to the compiler that all lanes have this value, so that what follows from it is computed once a warp.
  template <class Int>
  __device__ static Int uniform(Int value) {
    return __shfl_sync(kWholeWarp, value, 0);
  }

  // One arrival a warp.
  __device__ static void arrive(std::uint64_t* barrier) {
    __syncwarp();
    if (lane() == 0) mbarrier_arrive(shared_address(barrier));
  }

  // Warpgroups take turns at issuing products, so that one takes exponentials while another multiplies: 3 % at
  // head_dim 128. Barrier id + 1 collects the warpgroup that waits and the one that passes.
  __device__ void wait_turn() const { named_barrier_sync(id + 1, 256); }
  __device__ void pass_turn() const { named_barrier_arrive((id + 1) % Shape::kWarpgroups + 1, 256); }

  __device__ const WarpgroupWork& work(std::uint32_t stage) const { return s.warpgroup_work[stage][id]; }

  // The tile in the slot; false when none is left.
  __device__ bool enter_tile() {
    const std::uint32_t stage = slot.stage();
    mbarrier_wait(shared_address(&s.work_ready[stage]), slot.parity());
    if (uniform(static_cast<int>(s.work[stage].valid)) == 0) return false;
    const WarpgroupWork& mine = work(stage);
    block = uniform(mine.block);
    last_block = uniform(mine.last_block);
    clean_begin = uniform(mine.clean_begin);
    clean_count = uniform(static_cast<unsigned>(mine.clean_count));
    skipped_before = uniform(mine.skipped_before);
    rows[0] = rows[1] = RowSoftmax{};
    sums[0] = sums[1] = 0;
    folds = true;
    return true;
  }
  __device__ void leave_tile(std::uint32_t stage) { arrive(&s.work_read[stage]); }

  // A tile of which this warpgroup's rows do not exist or see nothing.
  __device__ void pass_over_tile() {
    for (int i = 0; i < skipped_before; ++i) skip_block();
    if (skipped_before > 0) {
      wait_queries();  // copied for all warpgroups: the stage, and the block's end, must not come before they arrive
      release_queries();
    }
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) acc[i] = 0;
    const float zero[2] = {finish_row(0), finish_row(1)};
    store(slot.stage(), zero);
    leave_tile(slot.stage());
    slot.advance();
  }

  // Blocks that other warpgroups see and this one does not.
  __device__ void skip_keys() {
    wait_turn();
    wait_keys();
    release_keys();
    pass_turn();
  }
  __device__ void skip_values() {
    wait_values();
    release_values();
  }
  __device__ void skip_block() {
    skip_keys();
    skip_values();
  }

  // P of a tile's first block, with no product running beside.
  __device__ __forceinline__ void begin_stream() {
    for (int i = 0; i < skipped_before; ++i) skip_block();
    wait_queries();
    scores();
    pass_turn();
    wgmma_wait<0>();
    pin_registers(sc);
    release_scores_operands();
    softmax([](bool, const float(&)[2]) {});
    fresh = true;
  }

  // The same tile's next block, whose S and P are computed beside O += P V of the block in hand.
  __device__ __forceinline__ void next_block() {
    --block;
    issue_products();
    softmax([this](bool raised, const float(&factor)[2]) {
      wait_outputs();
      if (!raised) return;
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) acc[i] *= factor[i / 2 % 2];
    });
    fresh = false;
  }

  // The tile is at its last O += P V; beside it, S and P of the next tile's first block. False when no tile follows for
  // which that can be done: this one is then brought to its end.
  __device__ __forceinline__ bool next_tile() {
    const std::uint32_t stage = slot.stage();
    const float inverse[2] = {finish_row(0), finish_row(1)};
    const int skipped_after = uniform(work(stage).skipped_after);
    slot.advance();
    if (skipped_after > 0 || !enter_tile() || block < last_block || skipped_before > 1) {
      end_stream(stage, inverse, skipped_after);
      return false;
    }
    if (skipped_before > 0) skip_keys();
    wait_queries();
    issue_products();
    softmax([&](bool, const float(&)[2]) {
      wait_outputs();
      store(stage, inverse);
    });
    leave_tile(stage);
    if (skipped_before > 0) skip_values();
    fresh = true;
    return true;
  }

  __device__ void end_stream(std::uint32_t stage, const float (&inverse)[2], int skipped_after) {
    outputs();
    wait_outputs();
    store(stage, inverse);
    for (int i = 0; i < skipped_after; ++i) skip_block();
    leave_tile(stage);
  }

  __device__ __forceinline__ void issue_products() {
    scores();
    outputs();
    pass_turn();
    wgmma_wait<1>();
    pin_registers(sc);
    release_scores_operands();
  }
  __device__ __forceinline__ void wait_outputs() {
    wgmma_wait<0>();
    pin_registers(acc);
    release_values();
  }

  // S = Q K^T  [64, kTileKv], when the keys are there and it is this warpgroup's turn
  __device__ __forceinline__ void scores() {
    const std::uint64_t q_tile = k_major_descriptor(uniform(shared_address(s.q[id][q.stage()])));
    const std::uint64_t k_tile = k_major_descriptor(uniform(shared_address(s.k[k.stage()])));
    wait_keys();
    wait_turn();
    pin_registers(sc);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < Shape::kHeadDim / 16; ++d) {
      const int in_panel = d % 4 * 32;
      Wgmma<T, Shape::kTileKv>::template run<BLayout::k_major>(
          sc, advance_descriptor(q_tile, d / 4 * 64 * kPanelBytes + in_panel),
          advance_descriptor(k_tile, d / 4 * Shape::kTileKv * kPanelBytes + in_panel), d > 0);
    }
    wgmma_commit();
  }

  // O += P V  [64, v_dim]; O = P V for a tile's first block; when the values are there
  __device__ __forceinline__ void outputs() {
    const std::uint64_t v_tile =
        n_major_descriptor(uniform(shared_address(s.v[v.stage()])), Shape::kTileKv * kPanelBytes);
    wait_values();
    pin_registers(acc);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      Wgmma<T, Shape::kVDim>::template run<BLayout::n_major>(
          acc, prob[step], advance_descriptor(v_tile, step * 16 * kPanelBytes), step > 0 || !fresh);
    wgmma_commit();
  }

  __device__ __forceinline__ void wait_queries() {
    mbarrier_wait(shared_address(&s.q_ready[id][q.stage()]), q.parity());
  }
  __device__ __forceinline__ void wait_keys() { mbarrier_wait(shared_address(&s.k_ready[k.stage()]), k.parity()); }
  __device__ __forceinline__ void wait_values() { mbarrier_wait(shared_address(&s.v_ready[v.stage()]), v.parity()); }
  __device__ __forceinline__ void release_queries() {
    arrive(&s.q_read[id][q.stage()]);
    q.advance();
  }
  __device__ __forceinline__ void release_keys() {
    arrive(&s.k_read[k.stage()]);
    k.advance();
  }
  __device__ __forceinline__ void release_values() {
    arrive(&s.v_read[v.stage()]);
    v.advance();
  }
  __device__ __forceinline__ void release_scores_operands() {
    release_keys();
    if (block == last_block) release_queries();
  }

  // S becomes P, packed in `prob`. `between(raised, factor)` is called once m is final: it waits for the product that
  // still reads `prob`, and brings O up to date, which is to be multiplied by `factor` if m was raised.
  template <class Between>
  __device__ __forceinline__ void softmax(Between&& between) {
    if constexpr (kSoftCap) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) sc[i] = p.cap * tanhf(sc[i] * p.inverse_cap);
    }
    if (static_cast<unsigned>(block - clean_begin) >= clean_count) mask();

    float partial[kChains] = {};
    float seen[2];
    float factor[2] = {1.0F, 1.0F};
    maxima<0, kHalf>(seen);
    bool raised = follow(seen, factor);
    powers<0, kHalf>(partial);
    maxima<kHalf, kScores>(seen);
    float later[2];
    if (follow(seen, later)) {
      raised = true;
#pragma unroll
      for (int r = 0; r < 2; ++r) factor[r] *= later[r];
#pragma unroll
      for (int i = 0; i < kHalf; ++i) sc[i] *= later[i / 2 % 2];
#pragma unroll
      for (int i = 0; i < kChains; ++i) partial[i] *= later[i / 2 % 2];
    }
    between(raised, factor);
    pack<0, kHalf>();
    powers<kHalf, kScores>(partial);
    pack<kHalf, kScores>();
    sums[0] += (partial[0] + partial[1]) + (partial[4] + partial[5]);
    sums[1] += (partial[2] + partial[3]) + (partial[6] + partial[7]);
  }

  template <int kBegin, int kEnd>
  __device__ __forceinline__ void maxima(float (&seen)[2]) const {
    float top[kChains];
#pragma unroll
    for (int i = kBegin; i < kEnd; ++i)
      top[i % kChains] = i < kBegin + kChains ? sc[i] : fmaxf(top[i % kChains], sc[i]);
    seen[0] = fmaxf(fmaxf(top[0], top[1]), fmaxf(top[4], top[5]));
    seen[1] = fmaxf(fmaxf(top[2], top[3]), fmaxf(top[6], top[7]));
  }

  // Lets m follow the scores `seen` where they pass it by far. True if it was raised for some row of this warp;
  // `factor` is then what earlier P are to be multiplied by.
  __device__ __forceinline__ bool follow(const float (&seen)[2], float (&factor)[2]) {
    const bool passed = rows[0].passed_by(seen[0], p.scale) || rows[1].passed_by(seen[1], p.scale);
    if (!__any_sync(kWholeWarp, passed)) return false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float score = seen[r];
      score = fmaxf(score, __shfl_xor_sync(kWholeWarp, score, 1));
      score = fmaxf(score, __shfl_xor_sync(kWholeWarp, score, 2));
      factor[r] = rows[r].raise(score, p.scale);
      sums[r] *= factor[r];
    }
    folds = __all_sync(kWholeWarp, rows[0].folds(p.scale) && rows[1].folds(p.scale));
    return true;
  }

  // P of scores kBegin .. kEnd - 1, in place; adds them to the chains.
  template <int kBegin, int kEnd>
  __device__ __forceinline__ void powers(float (&partial)[kChains]) {
    float offset[2] = {rows[0].offset(p.scale), rows[1].offset(p.scale)};
    if (!folds) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        if (rows[r].folds(p.scale)) continue;
        offset[r] = 0;
#pragma unroll
        for (int i = kBegin; i < kEnd; ++i)
          if (i / 2 % 2 == r) sc[i] = fminf(sc[i], FLT_MAX) - rows[r].top;
      }
    }
#pragma unroll
    for (int i = kBegin; i < kEnd; ++i) {
      sc[i] = exp2_approx(fmaf(sc[i], p.scale.log2, -offset[i / 2 % 2]));
      partial[i % kChains] += sc[i];
    }
  }

  // P as the A fragments of P V: accumulators of 16 columns are the four registers of one step.
  template <int kBegin, int kEnd>
  __device__ __forceinline__ void pack() {
#pragma unroll
    for (int i = kBegin; i < kEnd; i += 2) prob[i / 8][i / 2 % 4] = pack_pair<T>(sc[i], sc[i + 1]);
  }

  // Scores of keys that a row does not see become -infinity.
  __device__ __forceinline__ void mask() {
    const WarpgroupWork& mine = work(slot.stage());
    const int key = block * Shape::kTileKv + lane() % 4 * 2;  // of sc[0]
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int last = mine.keys.last(thread_row() + 8 * r) - key;
      const int first = mine.keys.first(thread_row() + 8 * r) - key;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const int column = i / 4 * 8 + i % 2;
        if (i / 2 % 2 == r && (column > last || column < first)) sc[i] = RowSoftmax::kUnseen;
      }
    }
  }

  // Writes the log-sum-exp of row r of the tile in the slot; returns 1 / sum, or 0 for a row that sees no key.
  __device__ __forceinline__ float finish_row(int r) {
    const WarpgroupWork& mine = work(slot.stage());
    const int row = thread_row() + 8 * r;
    float sum = sums[r];
    sum += __shfl_xor_sync(kWholeWarp, sum, 1);
    sum += __shfl_xor_sync(kWholeWarp, sum, 2);
    if (row < mine.queries && lane() % 4 == 0) p.lse[mine.lse_offset + row] = rows[r].log_sum_exp(sum, p.scale);
    return sum == 0.0F ? 0.0F : rcp_approx(sum);
  }

  // O times `inverse`, straight from registers. Four lanes hold neighbouring pairs of a row: they exchange them so that
  // each stores 16 bytes.
  __device__ __forceinline__ void store(std::uint32_t stage, const float (&inverse)[2]) {
    const WarpgroupWork& mine = work(stage);
    T* o = static_cast<T*>(p.o) + mine.o_offset + thread_row() * p.o_stride + 8 * (lane() % 4);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const bool exists = thread_row() + 8 * r < mine.queries;
#pragma unroll
      for (int j = 0; j < Shape::kVDim / 32; ++j) {
        std::uint32_t pairs[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int at = (4 * j + i) * 4 + 2 * r;
          pairs[i] = inverse[r] == 0.0F ? 0U : pack_pair<T>(acc[at] * inverse[r], acc[at + 1] * inverse[r]);
        }
        exchange(pairs);
        if (exists)
          *reinterpret_cast<uint4*>(o + 8 * r * p.o_stride + 32 * j) = uint4{pairs[0], pairs[1], pairs[2], pairs[3]};
      }
    }
  }

  // Transposes the 4 x 4 matrix that four neighbouring lanes hold, a row each.
  __device__ __forceinline__ static void exchange(std::uint32_t (&row)[4]) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
      const bool upper = (lane() & step) != 0;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if ((i & step) != 0) continue;
        const std::uint32_t give = upper ? row[i] : row[i + step];
        const std::uint32_t got = __shfl_xor_sync(kWholeWarp, give, step);
        (upper ? row[i] : row[i + step]) = got;
      }
    }
  }

  const FlashSm90Params& p;
  FlashSm90Shared<Shape>& s;
  const int id;
  Ring<Shape::kWorkStages> slot;
  Ring<Shape::kStages> k;
  Ring<Shape::kStages> v;
  Ring<Shape::kQStages> q;

  int block = 0;        // that S and P belong to; blocks go down
  int last_block = 0;   // of the tile for these rows
  int clean_begin = 0;  // clean_count blocks from here hold only keys that all these rows see
  unsigned clean_count = 0;
  int skipped_before = 0;  // blocks of the tile above these rows'
  bool fresh = true;       // O holds nothing of P's tile yet

  float sc[kScores];              // S, then P
  std::uint32_t prob[kSteps][4];  // P, packed
  float acc[kOutputs];            // O
  RowSoftmax rows[2];
  float sums[2];  // of P: this thread's share of its two rows
  bool folds = true;
};

#endif

}  // namespace inferometer
