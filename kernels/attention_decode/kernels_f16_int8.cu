#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::f16, KvFormat::int8>(const DecodeKernelKey& key) {
  return find_by_head_dim<__half, FormatOf<KvFormat::int8>>(key);
}

}  // namespace inferometer::decode
