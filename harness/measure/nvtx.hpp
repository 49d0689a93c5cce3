// Named time ranges for Nsight Systems and Nsight Compute, in the NVTX domain `inferometer`.
#pragma once

#include <string_view>

namespace inferometer {

// Open from construction to destruction; ranges of one thread nest. The name is registered with the tool once, so that
// a filter can select it. Costs a few nanoseconds when no tool is attached, nothing in a build without CUDA.
class NvtxRange {
 public:
  explicit NvtxRange(std::string_view name);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace inferometer
