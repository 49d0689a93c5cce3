#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::bf16, KvFormat::e4m3>(const DecodeKernelKey& key) {
  return find_by_head_dim<__nv_bfloat16, FormatOf<KvFormat::e4m3>>(key);
}

}  // namespace inferometer::decode
