// The instantiations of the decode kernel, spread over one file for each type and storage format so that they compile
// side by side.
#pragma once

#include <cstdint>

#include "harness/operator/dtype.hpp"

namespace inferometer::decode {

// How the cache stores K and V: 16 bits of the problem's dtype, or codes (reference/kv_cache/layout.hpp).
enum class KvFormat : std::uint8_t { half, int8, e4m3, int4 };

struct DecodeKernel {
  const void* function = nullptr;  // flash_decode_kernel<...>
  int threads = 0;
  int shared_bytes = 0;
  int cluster_shared_bytes = 0;  // with the inbox in which the blocks of a cluster find each other's results
};

struct DecodeKernelKey {
  std::int64_t head_dim = 0;
  int row_tiles = 0;     // of 8 query rows: 1, or 2 up to head_dim 128
  bool wide = false;     // shape.hpp
  bool grouped = false;  // codes with more than one scale a row
};

// Throws std::logic_error for a key that no kernel was made for: the plan asks for none.
template <Dtype kDtype, KvFormat kFormat>
DecodeKernel find_kernel(const DecodeKernelKey& key);

// flash_decode_new_kernel, for f16, 16 bits, head_dim 64 and 128, which no key has otherwise.
DecodeKernel find_new_token_kernel(const DecodeKernelKey& key);

}  // namespace inferometer::decode
