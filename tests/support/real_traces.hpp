// Published traces that are no part of the project: results/notes/kv_memory.md says where they come from.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/catch.hpp"

namespace inferometer::test {

// The file, from the folder that INFEROMETER_TRACES names, else from ../shared/data/traces; or nothing, said aloud.
inline std::string real_trace(const std::string& name) {
  namespace fs = std::filesystem;
  const char* const given = std::getenv("INFEROMETER_TRACES");
  const fs::path folder =
      given != nullptr ? fs::path(given) : fs::path(INFEROMETER_SOURCE_DIR).parent_path() / "shared/data/traces";
  if (fs::exists(folder / name)) return (folder / name).string();
  WARN("not tested: there is no " << (folder / name).string() << "; INFEROMETER_TRACES names the folder of traces");
  return {};
}

}  // namespace inferometer::test
