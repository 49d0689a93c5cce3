#include "harness/operator/no_cuda.hpp"

#include <cstdlib>
#include <string_view>

namespace inferometer {

std::string no_cuda_reason() {
  const char* setting = std::getenv("INFEROMETER_CUDA");  // the launcher's, which chose this build by it
  if (setting != nullptr && std::string_view(setting) == "off")
    return "this build has no CUDA: INFEROMETER_CUDA=off leaves it out";
  return "this build has no CUDA: it needs the CUDA Toolkit and a GPU (or INFEROMETER_CUDA=on)";
}

}  // namespace inferometer
