#include "harness/results/recorded_command.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

namespace inferometer {
namespace fs = std::filesystem;

namespace {

constexpr std::array<std::string_view, 4> kBeforeOutput{"", "-o", "-o=", "--output="};

// "a/b/c.json" gives "c.json", "a/b/" gives "b/".
std::string last_name(const fs::path& path) {
  if (path.has_filename()) return path.filename().string();
  return (path.parent_path().filename() / "").string();
}

std::string recorded_config(const std::string& path, const std::string& project) {
  const std::string shown = path_in_project(path, project);
  return fs::path(shown).is_absolute() ? last_name(shown) : shown;
}

}  // namespace

std::string path_in_project(const std::string& path, const std::string& project) {
  const fs::path from = fs::absolute(project).lexically_normal();
  const fs::path inside = fs::absolute(path).lexically_normal().lexically_relative(from);
  const bool outside = inside.empty() || *inside.begin() == "..";
  return outside ? path : inside.string();
}

std::vector<std::string> recorded_command(std::vector<std::string> argv, const std::vector<std::string>& configs,
                                          const std::string& output, const std::string& project) {
  for (std::string& word : argv) {
    if (std::find(configs.begin(), configs.end(), word) != configs.end()) word = recorded_config(word, project);
    if (output.empty() || !word.ends_with(output)) continue;
    const std::string before = word.substr(0, word.size() - output.size());
    if (std::find(kBeforeOutput.begin(), kBeforeOutput.end(), before) != kBeforeOutput.end())
      word = before + last_name(output);
  }
  return argv;
}

}  // namespace inferometer
