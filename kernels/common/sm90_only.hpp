// Kernels that exist for compute capability 9.0 alone.
#pragma once

#include <string_view>

namespace inferometer {

// Throws std::runtime_error where the code that the current device runs for `kernel` is not sm_90's: elsewhere the
// driver would make code of the PTX for older chips, in which such a kernel is empty, and its outputs would stay
// unwritten. `name` is the kernel's, for the sentence. Throws CudaError too.
void require_sm90_code(const void* kernel, std::string_view name);

// Whether the current GPU is of compute capability 9.0. Throws CudaError.
bool on_sm90();

}  // namespace inferometer
