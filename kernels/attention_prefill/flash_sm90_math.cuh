// attention_prefill / flash_sm90: a math warpgroup, which computes 64 rows of tile after tile.
//
// Per block of keys, with the products of the block before still running:
//   S = Q K^T            [64, kTileKv]  accumulators
//   P = 2^(c S - c m)    [64, kTileKv]  in two halves: the maxima of the second beside the powers of the first
//   O += P V             [64, v_dim]    accumulators; P is A, from registers
// Tiles follow without a gap: the first S of a tile is computed beside the last O += P V of the tile before.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_params.hpp"
#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_scores.cuh"
#include "kernels/attention_prefill/flash_sm90_shared.cuh"
#include "kernels/attention_prefill/flash_sm90_softmax.cuh"
#include "kernels/attention_prefill/flash_sm90_store.cuh"
#include "kernels/attention_prefill/flash_sm90_thread.cuh"
#include "kernels/common/wgmma_matrix.cuh"
#include "kernels/ptx/rcp.cuh"
#include "kernels/ptx/warpgroup.cuh"
#include "kernels/ptx/wgmma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class T, class Shape, bool kSoftCap>
class MathWarpgroup : WarpgroupThread {
 public:
  __device__ MathWarpgroup(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared, int warpgroup, int team)
      : p(params), s(shared), id(warpgroup), first_barrier(team * Shape::kWarpgroups + 1) {}

  __device__ void run() {
    if (id == Shape::kWarpgroups - 1) pass_turn();  // the first turn is warpgroup 0's
    while (enter_tile()) {
      if (block < last_block) {
        pass_over_tile();
        continue;
      }
      begin_stream();
      do {
        while (block > last_block) {
          if (kTrusting && block > trusted_end() && block <= uniform(work(slot.stage()).settled)) {
            trusting_blocks();
          } else {
            next_block();
          }
        }
      } while (next_tile());
    }
  }

 private:
  using Softmax = BlockSoftmax<T, Shape::kTileKv, Shape::kChains>;
  using Store = OutputStore<T, Shape::kVDim>;
  static constexpr int kScores = Softmax::kScores;
  static constexpr int kSteps = Softmax::kSteps;
  static constexpr int kOutputs = Store::kOutputs;
  static constexpr bool kTrusting = Shape::kTrusting && !kSoftCap;

  static constexpr int kNone = 1 << 30;  // above any block

  // Blocks above this one may be trusting. With one stage of queries the last block is not: it lets go of them sooner.
  __device__ int trusted_end() const { return last_block + (Shape::kQStages == 1 ? 1 : 0); }

  // Warpgroups take turns at issuing products, so that one takes exponentials while another multiplies: 3 % at
  // head_dim 128. Barrier first_barrier + id collects the warpgroup that waits and the one that passes.
  __device__ void wait_turn() const { named_barrier_sync(first_barrier + id, 256); }
  __device__ void pass_turn() const { named_barrier_arrive(first_barrier + (id + 1) % Shape::kWarpgroups, 256); }

  __device__ const WarpgroupWork& work(std::uint32_t stage) const { return s.warpgroup_work[stage][id]; }

  // The tile in the slot; false when none is left.
  __device__ bool enter_tile() {
    const std::uint32_t stage = slot.stage();
    mbarrier_wait(shared_address(&s.work_ready[stage]), slot.parity());
    if (uniform(static_cast<int>(s.work[stage].valid)) == 0) return false;
    const WarpgroupWork& mine = work(stage);
    block = uniform(mine.block);
    last_block = uniform(mine.last_block);
    skipped_before = uniform(mine.skipped_before);
    soft.reset();
    return true;
  }
  __device__ void leave_tile(std::uint32_t stage) { mbarrier_arrive(shared_address(&s.work_read[stage])); }

  // A tile of which this warpgroup's rows do not exist or see nothing.
  __device__ void pass_over_tile() {
    for (int i = 0; i < skipped_before; ++i) skip_block();
    if (skipped_before > 0) {
      wait_queries();  // copied for all warpgroups: the stage, and the block's end, must not come before they arrive
      arrive(&s.q_read[id][q.stage()]);
      q.advance();
    }
    float unused[2];
    finish_rows(slot.stage(), soft, unused);
    Store::zeros(p, work(slot.stage()));
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
    const bool masked = masked_block();
    wgmma_wait<0>();
    pin_registers(sc);
    release_scores_operands();
    softmax(masked, [](bool, const float(&)[2]) {});
    fresh = true;
  }

  // The same tile's next block, whose S and P are computed beside O += P V of the block in hand.
  __device__ __forceinline__ void next_block() {
    --block;
    start_products();
    const bool masked = masked_block();
    wait_scores();
    softmax(masked, [this](bool raised, const float(&factor)[2]) {
      wait_outputs();
      if (!raised) return;
#pragma unroll
      for (int i = 0; i < kOutputs; ++i) acc[i] *= factor[i / 2 % 2];
    });
    fresh = false;
  }

  // As next_block again and again, once each row has seen a key, until the blocks above trusted_end() are done or O
  // must be multiplied, which this does then. K and Q are kept until it is known that a block need not be done again:
  // rarely, by each warp for itself. A warp that leaves the loop for O comes back to the same products as the others.
  __device__ __forceinline__ void trusting_blocks() {
    while (true) {
      int end = trusted_end();
      --block;
      start_products();
      const bool masked = masked_block();
      wgmma_wait<1>();
      pin_registers(sc);
      if (masked) mask();
      soft.run_trusting(
          sc, prob, p.scale,
          [this] {
            scores_of_warp<T, Shape>(shared_address(s.q[id][q.stage()]), shared_address(s.k[k.stage()]), sc);
            if (masked_block()) mask();
          },
          [this] { wait_outputs(); },
          [&](const float(&factor)[2]) {
            end = kNone;
            keep(factor);
          });
      release_scores_operands();
      fresh = false;
      if (block > end) continue;
      if (end == kNone) multiply_by_kept();
      return;
    }
  }

  // What O is to be multiplied by, in shared memory meanwhile: rare, and the loop needs the registers.
  __device__ __forceinline__ void keep(const float (&factor)[2]) {
    if (lane() % 4 != 0) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) s.factors[id][row() + 8 * r] = factor[r];
  }
  __device__ __forceinline__ void multiply_by_kept() {
    __syncwarp();
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float factor = s.factors[id][row() + 8 * r];
#pragma unroll
      for (int i = 0; i < kOutputs; ++i)
        if (i / 2 % 2 == r) acc[i] *= factor;
    }
    __syncwarp();
  }

  // The tile is at its last O += P V; beside it, S and P of the next tile's first block. False when no tile follows for
  // which that can be done: this one is then brought to its end.
  __device__ __forceinline__ bool next_tile() {
    const std::uint32_t stage = slot.stage();
    const Softmax ended = soft;
    const int skipped_after = uniform(work(stage).skipped_after);
    slot.advance();
    q.advance();
    if (skipped_after > 0 || !enter_tile() || block < last_block || skipped_before > 1) {
      end_stream(stage, ended, skipped_after);
      return false;
    }
    if constexpr (Shape::kQStages == 1) {
      follow_outputs(stage, ended);
    } else {
      if (skipped_before > 0) skip_keys();
      wait_queries();
      start_products();
      float inverse[2];
      finish_rows(stage, ended, inverse);
      const bool masked = masked_block();
      wait_scores();
      softmax(masked, [&](bool, const float(&)[2]) {
        wait_outputs();
        store(stage, inverse);
      });
    }
    leave_tile(stage);
    if (uniform(work(slot.stage()).skipped_before) > 0) skip_values();  // anew: a register less
    fresh = true;
    return true;
  }

  // With one stage of queries the next tile's come late: O += P V does not wait for them, and O is stored while S is on
  // its way.
  __device__ __forceinline__ void follow_outputs(std::uint32_t stage, const Softmax& ended) {
    outputs();
    if (skipped_before > 0) skip_keys();
    float inverse[2];
    finish_rows(stage, ended, inverse);
    wait_queries();
    scores();
    pass_turn();
    const bool masked = masked_block();
    wgmma_wait<1>();
    pin_registers(acc);
    release_values();
    store(stage, inverse);
    wgmma_wait<0>();
    pin_registers(sc);
    release_scores_operands();
    softmax(masked, [](bool, const float(&)[2]) {});
  }

  __device__ void end_stream(std::uint32_t stage, const Softmax& ended, int skipped_after) {
    outputs();
    float inverse[2];
    finish_rows(stage, ended, inverse);
    wait_outputs();
    store(stage, inverse);
    for (int i = 0; i < skipped_after; ++i) skip_block();
    leave_tile(stage);
  }

  __device__ __forceinline__ void start_products() {
    scores();
    outputs();
    pass_turn();
  }
  __device__ __forceinline__ void wait_scores() {
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
    const std::uint64_t k_tile = swizzled_descriptor(16, Shape::group_bytes(Shape::kQkPanels)) |
                                 (uniform(shared_address(s.k[k.stage()])) & 0x3FFFFU) >> 4;
    wait_keys();
    wait_turn();
    pin_registers(sc);
    wgmma_fence();
#pragma unroll
    for (int d = 0; d < Shape::kHeadDim / 16; ++d) {
      const int in_panel = d % 4 * 32;
      Wgmma<T, Shape::kTileKv>::template run<BLayout::k_major>(
          sc, advance_descriptor(q_tile, d / 4 * 64 * kPanelBytes + in_panel),
          advance_descriptor(k_tile, d / 4 * Shape::panel_bytes() + in_panel), d > 0);
    }
    wgmma_commit();
  }

  // O += P V  [64, v_dim]; O = P V for a tile's first block; when the values are there
  __device__ __forceinline__ void outputs() {
    const std::uint64_t v_tile = swizzled_descriptor(Shape::panel_bytes(), Shape::group_bytes(Shape::kVPanels)) |
                                 (uniform(shared_address(s.v[v.stage()])) & 0x3FFFFU) >> 4;
    wait_values();
    pin_registers(acc);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < kSteps; ++step)
      Wgmma<T, Shape::kVDim>::template run<BLayout::n_major>(
          acc, prob[step], advance_descriptor(v_tile, step * 2 * Shape::group_bytes(Shape::kVPanels)),
          step > 0 || !fresh);
    wgmma_commit();
  }

  __device__ __forceinline__ void wait_queries() {
    mbarrier_wait(shared_address(&s.q_ready[id][q.stage()]), q.parity());
  }
  __device__ __forceinline__ void wait_keys() { mbarrier_wait(shared_address(&s.k_ready[k.stage()]), k.parity()); }
  __device__ __forceinline__ void wait_values() { mbarrier_wait(shared_address(&s.v_ready[v.stage()]), v.parity()); }
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
    if (block == last_block) arrive(&s.q_read[id][q.stage()]);
  }

  // Whether some of the rows do not see some key of the block. Asked while S is on its way.
  __device__ __forceinline__ bool masked_block() const {
    const WarpgroupWork& mine = work(slot.stage());
    return uniform(static_cast<int>(static_cast<unsigned>(block - mine.clean_begin) >=
                                    static_cast<unsigned>(mine.clean_count))) != 0;
  }

  // S becomes P. `between`: see BlockSoftmax.
  template <class Between>
  __device__ __forceinline__ void softmax(bool masked, Between&& between) {
    if constexpr (kSoftCap) {
#pragma unroll
      for (int i = 0; i < kScores; ++i) sc[i] = p.cap * tanhf(sc[i] * p.inverse_cap);
    }
    if (masked) mask();
    soft.run(sc, prob, p.scale, between);
  }

  // Scores of keys that a row does not see become -infinity.
  __device__ __forceinline__ void mask() {
    const VisibleKeys& keys = work(slot.stage()).keys;
    const int key = block * Shape::kTileKv + lane() % 4 * 2;  // of sc[0]
#pragma unroll
    for (int r = 0; r < 2; ++r)
      mask_row<Shape::kMaskBits>(sc, r, keys.first(row() + 8 * r) - key, keys.last(row() + 8 * r) - key);
  }

  // Writes the log-sum-exp of the rows of a tile that `ended`; their 1 / sum, or 0 for a row that sees no key.
  __device__ __forceinline__ void finish_rows(std::uint32_t stage, const Softmax& ended, float (&inverse)[2]) {
    const WarpgroupWork& mine = work(stage);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row_of_tile = row() + 8 * r;
      const float sum = ended.row_sum(r);
      if (row_of_tile < mine.queries && lane() % 4 == 0)
        p.lse[mine.lse_offset + row_of_tile] = ended.log_sum_exp(r, sum, p.scale);
      inverse[r] = sum == 0.0F ? 0.0F : rcp_approx(sum);
    }
  }

  // O of the tile before.
  __device__ __forceinline__ void store(std::uint32_t stage, const float (&inverse)[2]) {
    Store::scale_rows(acc, inverse);
    Store::rows(p, work(stage), acc);
  }

  const FlashSm90Params& p;
  FlashSm90Shared<Shape>& s;
  const int id;             // in the team
  const int first_barrier;  // of the team's
  Ring<Shape::kWorkStages> slot;
  Ring<Shape::kKStages> k;
  Ring<Shape::kVStages> v;
  Ring<Shape::kQStages> q;

  int block = 0;           // that S and P belong to; blocks go down
  int last_block = 0;      // of the tile for these rows
  int skipped_before = 0;  // blocks of the tile above these rows'
  bool fresh = true;       // O holds nothing of P's tile yet

  float sc[kScores];              // S, then P
  std::uint32_t prob[kSteps][4];  // P, packed
  float acc[kOutputs];            // O
  Softmax soft;
};

#endif

}  // namespace inferometer
