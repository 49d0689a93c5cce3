// attention_prefill / flash_sm90: the warps that start copies. One copies Q and K, the other V: K runs ahead of V, as S
// runs ahead of P V, and neither waits for the other's stages.
#pragma once

#include <cstdint>

#include "kernels/attention_prefill/flash_sm90_finder.cuh"
#include "kernels/attention_prefill/flash_sm90_ring.hpp"
#include "kernels/attention_prefill/flash_sm90_shared.cuh"
#include "kernels/attention_prefill/flash_sm90_work.cuh"
#include "kernels/ptx/tma.cuh"

namespace inferometer {

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

template <class Shape>
class CopyWarp {
 protected:
  static constexpr unsigned kWholeWarp = 0xffffffffU;

  __device__ CopyWarp(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared)
      : p(params), s(shared), lane(static_cast<int>(threadIdx.x) % 32) {}

  // The boxes, of kv_box rows each, that hold a block's keys in a paged cache.
  struct Boxes {
    int count = 0;
    int page = 0;   // of this lane's box, of those from `begin` on
    int token = 0;  // and where in the page it begins; grouped: in groups of 8 tokens
  };

  // To be asked for before the wait for a stage: the table is far away, and the divisions take their time.
  __device__ Boxes find_boxes(const PrefillWork& work, int block, int begin = 0) const {
    if (!Shape::kGrouped && p.block_table == nullptr) return {};
    const int first = block * Shape::kTileKv;
    const int count = count_boxes(work, block);
    const int token = first + min(begin + lane, count - 1) * p.kv_box;
    const std::int32_t* table = p.block_table + std::int64_t{work.sequence} * p.max_blocks;
    const int in_page = token % p.block_size;
    return {.count = count,
            .page = table[token / p.block_size],
            .token = Shape::kGrouped ? static_cast<int>(static_cast<unsigned>(in_page) / 8) : in_page};
  }

  // Until the stage that is to be filled was read. Were lane 0 to fill it before all lanes have seen that, one that
  // looks only when it has been read again would wait for the phase after, which this warp would have to bring about.
  __device__ void wait_for_stage(std::uint64_t* read, std::uint32_t parity) const {
    mbarrier_wait(shared_address(read), parity ^ 1);
    __syncwarp();
  }

  // Starts the copy of a block's rows: all of them from a contiguous cache, those that exist from a paged one.
  template <int kPanels>
  __device__ void start_rows(const CUtensorMap* map, std::uint32_t dst, std::uint32_t barrier, const PrefillWork& work,
                             int block, const Boxes& boxes) {
    if constexpr (Shape::kGrouped) {
      start_grouped<kPanels>(map, dst, barrier, work, boxes);
    } else if (p.block_table != nullptr) {
      start_boxes<kPanels>(map, dst, barrier, work, block, boxes);
    } else if (lane == 0) {
      mbarrier_arrive_expect_bytes(barrier, Shape::kTileKv * 128 * kPanels);
#pragma unroll
      for (int panel = 0; panel < kPanels; ++panel)
        tma_load_4d(dst + panel * Shape::kTileKv * 128, map, barrier, panel * 64,
                    work.kv_token + block * Shape::kTileKv, work.kv_head, p.cu_kv_lens != nullptr ? 0 : work.sequence);
    }
    __syncwarp();
  }

  const FlashSm90Params& p;
  FlashSm90Shared<Shape>& s;
  const int lane;
  Ring<Shape::kWorkStages> slot;

 private:
  __device__ int count_boxes(const PrefillWork& work, int block) const {
    return min(Shape::kTileKv / p.kv_box, (work.keys.kv_len - block * Shape::kTileKv + p.kv_box - 1) / p.kv_box);
  }

  template <int kPanels>
  __device__ void announce(std::uint32_t barrier, int count) const {
    if (lane == 0) mbarrier_arrive_expect_bytes(barrier, count * p.kv_box * 128 * kPanels);
    __syncwarp();
  }

  // One lane starts all copies. Were each to start its own, the warp would still go through them one by one.
  template <int kPanels>
  __device__ void start_boxes(const CUtensorMap* map, std::uint32_t dst, std::uint32_t barrier, const PrefillWork& work,
                              int block, Boxes boxes) {
    const int count = count_boxes(work, block);  // anew: this warp has few registers
    announce<kPanels>(barrier, count);
#pragma unroll 1
    for (int box = 0; box < count; ++box) {
      if (box > 0 && box % 32 == 0) boxes = find_boxes(work, block, box);
      const int page = __shfl_sync(kWholeWarp, boxes.page, box % 32);
      const int token = __shfl_sync(kWholeWarp, boxes.token, box % 32);
      if (lane == 0) {
#pragma unroll
        for (int panel = 0; panel < kPanels; ++panel)
          tma_load_4d(dst + (panel * Shape::kTileKv + box * p.kv_box) * 128, map, barrier, panel * 64, token,
                      work.kv_head, page);
      }
    }
  }

  // All panels in a box. What comes from other lanes does so for several boxes at once: one after the other, boxes of
  // 16 rows ran at 0.8 of the speed of a contiguous cache.
  template <int kPanels>
  __device__ void start_grouped(const CUtensorMap* map, std::uint32_t dst, std::uint32_t barrier,
                                const PrefillWork& work, const Boxes& boxes) {
    static_assert(Shape::kTileKv / 8 <= 32);  // a lane a box
    announce<kPanels>(barrier, boxes.count);
    constexpr int kAtOnce = 4;
    const int panel = work.kv_head * kPanels;
    const std::uint32_t box_bytes = p.kv_box * 128 * kPanels;
#pragma unroll 1
    for (int begin = 0; begin < boxes.count; begin += kAtOnce) {
      int page[kAtOnce];
      int group[kAtOnce];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        page[i] = __shfl_sync(kWholeWarp, boxes.page, begin + i);
        group[i] = __shfl_sync(kWholeWarp, boxes.token, begin + i);
      }
      if (lane == 0) {
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (begin + i < boxes.count)
            tma_load_5d(dst + (begin + i) * box_bytes, map, barrier, 0, 0, panel, group[i], page[i]);
      }
      __syncwarp();
    }
  }
};

template <class Shape>
class QueryKeyWarp : CopyWarp<Shape> {
 public:
  __device__ QueryKeyWarp(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared, int team)
      : CopyWarp<Shape>(params, shared), finder(params, shared) {
    if constexpr (Shape::kTeams > 1) finder.first(team);
  }

  // One tile after the other, until none is left. Queries are on their way one tile ahead.
  __device__ void run() {
    const PrefillWork* work = &enter_tile();
    while (work->valid) work = &copy_tile(*work);
    if constexpr (Shape::kTeams > 1) finder.leave_counters_clean();
  }

 private:
  using Base = CopyWarp<Shape>;
  using Base::lane;
  using Base::p;
  using Base::s;
  using Base::slot;

  // The tile in the slot, its queries asked for. A reference into shared memory: this warp has few registers.
  __device__ const PrefillWork& enter_tile() {
    mbarrier_wait(shared_address(&s.work_ready[slot.stage()]), slot.parity());
    const PrefillWork& work = s.work[slot.stage()];
    if (work.valid && !tile_blocks<Shape>(work).empty()) copy_queries(work);
    slot.advance();
    return work;
  }

  // Blocks of keys from the last to the first. Returns the tile that follows. With one stage of queries, asked for
  // before all keys of this tile they would wait for keys not yet copied.
  __device__ const PrefillWork& copy_tile(const PrefillWork& work) {
    const KeyBlocks blocks = tile_blocks<Shape>(work);
    int block = blocks.end - 1;
    if constexpr (Shape::kTeams == 1) {
      // Late, but in time: a team that has long tiles before it must not hold others that an idle one could compute.
      while (block >= blocks.begin + 2) copy_keys(work, block--);
      mbarrier_arrive(shared_address(&s.tile_wanted));  // of each lane, as each has read the work of tiles before
    } else {
      // When the stages of K are filled: later, keys would wait for it (64 full at 512: 422 TFLOP/s for 413).
      const int find_at = max(blocks.begin, blocks.end - Shape::kKStages);
      while (block >= find_at + 2) copy_keys(work, block--);
      finder.take();
      while (block >= find_at) copy_keys(work, block--);
      finder.next();
    }
    while (block >= blocks.begin) copy_keys(work, block--);
    return enter_tile();
  }

  __device__ void copy_queries(const PrefillWork& work) {
    const int sequence = p.cu_q_lens != nullptr ? 0 : work.sequence;
#pragma unroll
    for (int w = 0; w < Shape::kWarpgroups; ++w) {
      const std::uint32_t ready = shared_address(&s.q_ready[w][q.stage()]);
      this->wait_for_stage(&s.q_read[w][q.stage()], q.parity());
      if (lane == 0) {
        mbarrier_arrive_expect_bytes(ready, Shape::kQBytes);
#pragma unroll
        for (int panel = 0; panel < Shape::kQkPanels; ++panel)
          tma_load_4d(shared_address(&s.q[w][q.stage()][panel * 64 * 128]), &p.q, ready, panel * 64,
                      work.q_token + work.first_query + 64 * w, work.head, sequence);
      }
    }
    __syncwarp();
    q.advance();
  }

  __device__ void copy_keys(const PrefillWork& work, int block) {
    const auto boxes = this->find_boxes(work, block);
    this->wait_for_stage(&s.k_read[k.stage()], k.parity());
    const std::uint32_t ready = shared_address(&s.k_ready[k.stage()]);
    this->template start_rows<Shape::kQkPanels>(&p.k, shared_address(s.k[k.stage()]), ready, work, block, boxes);
    k.advance();
  }

  TileFinder<Shape> finder;  // of two teams
  Ring<Shape::kQStages> q;
  Ring<Shape::kKStages> k;
};

template <class Shape>
class ValueWarp : CopyWarp<Shape> {
 public:
  __device__ ValueWarp(const FlashSm90Params& params, FlashSm90Shared<Shape>& shared)
      : CopyWarp<Shape>(params, shared) {}

  __device__ void run() {
    while (true) {
      mbarrier_wait(shared_address(&s.work_ready[slot.stage()]), slot.parity());
      const PrefillWork& work = s.work[slot.stage()];
      if (!work.valid) return;
      const KeyBlocks blocks = tile_blocks<Shape>(work);
      for (int block = blocks.end - 1; block >= blocks.begin; --block) copy_values(work, block);
      mbarrier_arrive(shared_address(&s.work_read[slot.stage()]));
      slot.advance();
    }
  }

 private:
  using Base = CopyWarp<Shape>;
  using Base::lane;
  using Base::p;
  using Base::s;
  using Base::slot;

  __device__ void copy_values(const PrefillWork& work, int block) {
    const auto boxes = this->find_boxes(work, block);
    this->wait_for_stage(&s.v_read[v.stage()], v.parity());
    const std::uint32_t ready = shared_address(&s.v_ready[v.stage()]);
    const int rows = work.keys.kv_len - block * Shape::kTileKv;
    if (p.clean_values && rows < Shape::kTileKv) {
      const std::uint32_t landed = shared_address(&s.tail_landed);
      this->template start_rows<Shape::kVPanels>(&p.v, shared_address(s.v[v.stage()]), landed, work, block, boxes);
      mbarrier_wait(landed, tail_parity);
      tail_parity ^= 1;
      clear_rows(s.v[v.stage()], rows);
      if (lane == 0) mbarrier_arrive(ready);
    } else {
      this->template start_rows<Shape::kVPanels>(&p.v, shared_address(s.v[v.stage()]), ready, work, block, boxes);
    }
    __syncwarp();
    v.advance();
  }

  // Rows of V past the sequence's last key: their P is 0, and 0 times what they hold must not be NaN.
  __device__ void clear_rows(unsigned char* tile, int first_row) {
    constexpr int kChunks = 128 / 16;  // of a row
    for (int panel = 0; panel < Shape::kVPanels; ++panel) {
      auto* groups = tile + panel * Shape::panel_bytes();
      for (int i = first_row * kChunks + lane; i < Shape::kTileKv * kChunks; i += 32)
        reinterpret_cast<uint4*>(groups + i / 64 * Shape::group_bytes(Shape::kVPanels))[i % 64] = uint4{};
    }
    fence_async_shared();
    __syncwarp();
  }

  Ring<Shape::kVStages> v;
  std::uint32_t tail_parity = 0;
};

#endif

}  // namespace inferometer
