// Where this program comes from; filled in by the build.
#pragma once

#include <string>

namespace inferometer {

struct BuildInfo {
  std::string version;
  std::string git_commit;      // "unknown" outside a git checkout
  bool git_dirty = false;      // files differed from the commit, or were not in it
  std::string kernels_sha256;  // of every file under kernels/, names and contents
  std::string build_type;
  std::string compiler;
  std::string cuda_compiler;  // empty: built without CUDA
};

const BuildInfo& build_info();

}  // namespace inferometer
