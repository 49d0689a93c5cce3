// A loop whose index is a constant, for what must be one in each turn: template arguments, register arrays.
#pragma once

#include <utility>

namespace inferometer {

// Calls f.template operator()<0>() ... <kCount - 1>().
template <int kCount, class F>
__device__ __forceinline__ void const_for(F&& f) {
  [&]<int... kIndex>(std::integer_sequence<int, kIndex...>) { (f.template operator()<kIndex>(), ...); }
  (std::make_integer_sequence<int, kCount>());
}

}  // namespace inferometer
