// The ring of wide_chain.cuh: stages of weights, and slots of x. A stage has kUnitSlices slices of k for each
// warpgroup, a slot the same slices of x for the warpgroups of one way; a stage's slots follow each other. Both are
// waited for together: one warp copies weights, as far ahead as there are stages, another x, and each arrives at the
// stage's barrier.
#pragma once

#include <cstdint>

#include "kernels/decoder/wide_chain.hpp"
#include "kernels/ptx/mbarrier.cuh"
#include "kernels/ptx/shared_address.cuh"

namespace inferometer::decoder {

template <class FormatType, int kTokenCount>
struct Wide {
  using Format = FormatType;
  static constexpr int kTokens = kTokenCount;
  static constexpr int kSlabs = kTokens / 8;
  static constexpr int kMathThreads = kWideGroups * 128;
  static constexpr int kMathWarps = kMathThreads / 32;
  static constexpr int kThreads = kMathThreads + 128;
  static constexpr int kMostWays = kTokens <= 32 ? 4 : 2;
  static constexpr int kMathRegisters = kTokens <= 32 ? 104 : 112;
  static constexpr int kCopyRegisters = kTokens <= 32 ? 64 : 32;
  static constexpr int kSliceXBytes = kTokens * kWideSliceK * 2;
  static constexpr int kXBytes = Format::kUnitSlices * kSliceXBytes;
  static constexpr int kXSlots = 8;
  static constexpr int kMostStages = 16;
  static constexpr int kVecBytes = 128 * 16;  // of a slab of a band: four sums a thread
  static constexpr int kLeftBytes = kSlabs * (kMostWays == 4 ? 3 : 2) * kVecBytes;

  struct Shared {
    std::uint64_t full[kMostStages];
    std::uint64_t empty[kMostStages];
    std::uint64_t normed[2];   // factor and scale of a norm are there
    float factor[2][kTokens];  // what the sums behind it are multiplied with: 1 / (rms(h) scale)
    float scale[2][kTokens];   // of h * gain, to the next norm
  };

  static constexpr int kSmemBytes = 227 * 1024;
  static constexpr int kXAt = 0;
  static constexpr int kLeftAt = kXSlots * kXBytes;
  static constexpr int kStagesAt = (kLeftAt + kLeftBytes + 1023) / 1024 * 1024;
  static constexpr int kFit = (kSmemBytes - kStagesAt - static_cast<int>(sizeof(Shared))) / Format::kStageBytes;
  static constexpr int kStages = kFit < kMostStages ? kFit : kMostStages;
  static constexpr int kSharedAt = kStagesAt + kStages * Format::kStageBytes;
  static constexpr int kBytes = kSharedAt + static_cast<int>(sizeof(Shared));
  static_assert(kStages >= 3 && kBytes <= kSmemBytes);
};

// An item of a product and its share of work.
struct WideItem {
  int group;
  int part;
  int bands;       // that exist
  int first_band;  // of W
  int first_slice;
  int stages;

  template <class C>
  INFEROMETER_HOST_DEVICE static WideItem of(const WideProduct& product, int index) {
    const int group = index >> product.parts_log2;
    const int part = index & (product.parts - 1);
    const int left = product.all_bands - group * product.bands;
    return {group,
            part,
            left < product.bands ? left : product.bands,
            group * product.bands,
            part * product.part_slices,
            product.part_slices * product.bands / (kWideGroups * C::Format::kUnitSlices)};
  }
};

#if __CUDA_ARCH__ >= 900

// Of a stage in the ring.
template <class C>
struct WidePlace {
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ __forceinline__ void next() {
    if (++stage < C::kStages) return;
    stage = 0;
    parity ^= 1;
  }
};

// For those who multiply: the place in the ring, and the first of its slots.
template <class C>
class WideRing {
 public:
  __device__ __forceinline__ explicit WideRing(unsigned char* smem)
      : base_(shared_address(smem)),
        full_(shared_address(reinterpret_cast<typename C::Shared*>(smem + C::kSharedAt)->full)) {}

  __device__ __forceinline__ std::uint32_t stage() const {
    return base_ + C::kStagesAt + place_.stage * C::Format::kStageBytes;
  }
  __device__ __forceinline__ std::uint32_t x() const { return base_ + C::kXAt + x_at_; }
  __device__ __forceinline__ void wait() const { mbarrier_wait(full_ + place_.stage * 8, place_.parity); }

  // The barrier at which a warp that is done with the place arrives.
  __device__ __forceinline__ std::uint32_t empty() const { return full_ + C::kMostStages * 8 + place_.stage * 8; }

  // `x_bytes`: of the stage's slots. A product begins at the first one.
  __device__ __forceinline__ void next(int x_bytes) {
    place_.next();
    x_at_ = (x_at_ + x_bytes) % (C::kXSlots * C::kXBytes);
  }
  __device__ __forceinline__ void begin_product() { x_at_ = 0; }

 private:
  std::uint32_t base_;
  std::uint32_t full_;
  WidePlace<C> place_;
  std::uint32_t x_at_ = 0;
};

#endif

}  // namespace inferometer::decoder
