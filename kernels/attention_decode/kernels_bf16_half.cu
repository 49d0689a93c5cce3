#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::bf16, KvFormat::half>(const DecodeKernelKey& key) {
  return find_by_head_dim<__nv_bfloat16, FormatOf<KvFormat::half>>(key);
}

}  // namespace inferometer::decode
