#include "experiments/project.hpp"

#include <cstdlib>

namespace inferometer {

std::string project_folder() {
  const char* root = std::getenv("INFEROMETER_ROOT");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return root != nullptr ? root : ".";
}

}  // namespace inferometer
