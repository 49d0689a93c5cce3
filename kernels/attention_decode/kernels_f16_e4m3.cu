#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::f16, KvFormat::e4m3>(const DecodeKernelKey& key) {
  return find_by_head_dim<__half, FormatOf<KvFormat::e4m3>>(key);
}

}  // namespace inferometer::decode
