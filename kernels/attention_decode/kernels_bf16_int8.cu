#include "kernels/attention_decode/decode_kernel_table.cuh"

namespace inferometer::decode {

template <>
DecodeKernel find_kernel<Dtype::bf16, KvFormat::int8>(const DecodeKernelKey& key) {
  return find_by_head_dim<__nv_bfloat16, FormatOf<KvFormat::int8>>(key);
}

}  // namespace inferometer::decode
