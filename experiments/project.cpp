#include "experiments/project.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace inferometer {

std::string project_folder() {
  const char* root = std::getenv("INFEROMETER_ROOT");  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return root != nullptr ? root : ".";
}

std::vector<std::string> experiment_paths(std::error_code& error) {
  namespace fs = std::filesystem;
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator(fs::path(project_folder()) / "experiments", error))
    if (entry.path().extension() == ".json" && entry.path().filename() != "claims.json")
      paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace inferometer
