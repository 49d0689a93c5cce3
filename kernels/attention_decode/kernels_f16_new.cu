#include "kernels/attention_decode/decode_kernels.hpp"
#include "kernels/attention_decode/flash_decode_new.cuh"
#include "kernels/attention_decode/kv_format.cuh"
#include "kernels/attention_decode/shape.hpp"

namespace inferometer::decode {
namespace {

template <int kHeadDim, int kRowTiles, bool kWide>
DecodeKernel describe() {
  using S = Shape<HalfKv, kHeadDim, kRowTiles, kWide>;
  return {.function = reinterpret_cast<const void*>(&flash_decode_new_kernel<S>),
          .threads = S::kThreads,
          .shared_bytes = S::kInboxAt,
          .cluster_shared_bytes = S::kSharedBytes};
}

template <int kHeadDim>
DecodeKernel find_by_rows(const DecodeKernelKey& key) {
  if (key.row_tiles == 2) return key.wide ? describe<kHeadDim, 2, true>() : describe<kHeadDim, 2, false>();
  return key.wide ? describe<kHeadDim, 1, true>() : describe<kHeadDim, 1, false>();
}

}  // namespace

DecodeKernel find_new_token_kernel(const DecodeKernelKey& key) {
  return key.head_dim == 64 ? find_by_rows<64>(key) : find_by_rows<128>(key);
}

}  // namespace inferometer::decode
