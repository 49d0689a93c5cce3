// From a key to an instantiation. Included by the kernels_*.cu files alone.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include "kernels/attention_decode/decode_kernels.hpp"
#include "kernels/attention_decode/flash_decode.cuh"
#include "kernels/attention_decode/shape.hpp"

namespace inferometer::decode {

template <KvFormat kFormat>
using FormatOf = std::conditional_t<kFormat == KvFormat::half, HalfKv,
                                    std::conditional_t<kFormat == KvFormat::int8, Int8Kv,
                                                       std::conditional_t<kFormat == KvFormat::e4m3, E4m3Kv, Int4Kv>>>;

template <class T, class Shape>
DecodeKernel describe_kernel() {
  return {.function = reinterpret_cast<const void*>(&flash_decode_kernel<T, Shape>),
          .threads = Shape::kThreads,
          .shared_bytes = Shape::kInboxAt,
          .cluster_shared_bytes = Shape::kSharedBytes};
}

template <class T, class Format, int kHeadDim>
DecodeKernel find_by_rows(const DecodeKernelKey& key) {
  if constexpr (has_wide_form(kHeadDim)) {
    if (key.wide && key.row_tiles == 1) return describe_kernel<T, Shape<Format, kHeadDim, 1, true>>();
    if (key.wide) return describe_kernel<T, Shape<Format, kHeadDim, 2, true>>();
  }
  constexpr bool kGrouped = Format::kBits < 16;  // in narrow form only
  if constexpr (kHeadDim <= 128) {
    if (key.row_tiles == 2 && key.grouped) return describe_kernel<T, Shape<Format, kHeadDim, 2, false, kGrouped>>();
    if (key.row_tiles == 2) return describe_kernel<T, Shape<Format, kHeadDim, 2, false>>();
  }
  if (key.grouped) return describe_kernel<T, Shape<Format, kHeadDim, 1, false, kGrouped>>();
  return describe_kernel<T, Shape<Format, kHeadDim, 1, false>>();
}

template <class T, class Format>
DecodeKernel find_by_head_dim(const DecodeKernelKey& key) {
  switch (key.head_dim) {
    case 64: return find_by_rows<T, Format, 64>(key);
    case 96: return find_by_rows<T, Format, 96>(key);
    case 128: return find_by_rows<T, Format, 128>(key);
    case 192: return find_by_rows<T, Format, 192>(key);
    case 256: return find_by_rows<T, Format, 256>(key);
    default: break;
  }
  if constexpr (Format::kBits == 16) {
    if (key.head_dim == 80) return find_by_rows<T, Format, 80>(key);
    if (key.head_dim == 112) return find_by_rows<T, Format, 112>(key);
  }
  throw std::logic_error("decode: no kernel for head_dim " + std::to_string(key.head_dim));
}

}  // namespace inferometer::decode
