// What a way of cutting the sequences would cost: the model by which the plan chooses. No CUDA here.
#pragma once

#include <cstdint>

#include "kernels/attention_decode/decode_kernels.hpp"

namespace inferometer::decode {

// A way to cut: so many blocks of so many keys each.
struct Cut {
  std::int64_t blocks = 0;
  std::int64_t keys = 0;
  std::int64_t parts = 0;  // of the longest sequence
  bool wide = false;
  bool cluster = false;
};

// In keys that an SM reads at its share of the bandwidth; comparable for the same problem only.
double cost_of(const Cut& cut, KvFormat format, int blocks_per_sm, int sm_count);

}  // namespace inferometer::decode
