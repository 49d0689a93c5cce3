// Elements of a tensor as they lie in host memory.
#pragma once

#include <cstdint>
#include <type_traits>

#include "harness/operator/dtype.hpp"

namespace inferometer {

template <Dtype kDtype>
using Stored = std::conditional_t<dtype_bytes(kDtype) == 2, std::uint16_t,
                                  std::conditional_t<kDtype == Dtype::u8, std::uint8_t,
                                                     std::conditional_t<kDtype == Dtype::i32, std::int32_t, float>>>;

template <Dtype kDtype>
float stored_value(Stored<kDtype> stored) {
  if constexpr (kDtype == Dtype::f16) return f16_value(stored);
  if constexpr (kDtype == Dtype::bf16) return bf16_value(stored);
  return static_cast<float>(stored);
}

// Calls body.template operator()<kDtype>() for the dtype's own constant.
template <class Body>
void with_dtype(Dtype dtype, const Body& body) {
  switch (dtype) {
    case Dtype::f16: return body.template operator()<Dtype::f16>();
    case Dtype::bf16: return body.template operator()<Dtype::bf16>();
    case Dtype::f32: return body.template operator()<Dtype::f32>();
    case Dtype::i32: return body.template operator()<Dtype::i32>();
    case Dtype::u8: return body.template operator()<Dtype::u8>();
  }
}

}  // namespace inferometer
