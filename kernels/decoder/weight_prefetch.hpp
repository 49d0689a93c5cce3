// Which weights a kernel brings into the L2 on the side.
#pragma once

#include <cstdint>

namespace inferometer::decoder {

struct WeightPrefetch {
  const void* data = nullptr;  // 16-byte aligned
  std::int64_t bytes = 0;      // of all of them
  std::int64_t wanted = 0;     // of these, at most `bytes`; 0: none
};

}  // namespace inferometer::decoder
