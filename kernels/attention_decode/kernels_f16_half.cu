#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::f16, KvFormat::half>(const DecodeKernelKey& key) {
  return find_by_head_dim<__half, FormatOf<KvFormat::half>>(key);
}

}  // namespace inferometer::decode
