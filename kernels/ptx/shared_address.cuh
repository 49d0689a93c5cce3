// The address that PTX instructions of the shared state space take.
#pragma once

#include <cstdint>

namespace inferometer {

// `pointer` is generic and points into this block's shared memory. PTX cvta.to.shared (sm_20).
__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

}  // namespace inferometer
