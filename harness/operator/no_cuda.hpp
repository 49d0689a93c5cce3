// Why a build has no CUDA, for rows and users that would need it.
#pragma once

#include <string>

namespace inferometer {

// Names the setting where that is what left CUDA out; else says what such a build needs.
std::string no_cuda_reason();

}  // namespace inferometer
