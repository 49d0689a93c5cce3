// Who may include whom: the arrows of the tree, kept by reading every #include.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = INFEROMETER_SOURCE_DIR;

struct Include {
  std::string target;
  bool quoted = false;  // "ours", by path from the root
};

bool is_source(const fs::path& path) {
  static const std::set<std::string> extensions{".cpp", ".hpp", ".cu", ".cuh"};
  return extensions.contains(path.extension().string());
}

std::vector<Include> includes_of(std::istream& text) {
  static const std::regex pattern(R"re(^\s*#\s*include\s+([<"])([^>"]+)[>"])re");
  std::vector<Include> found;
  std::smatch match;
  for (std::string line; std::getline(text, line);)
    if (std::regex_search(line, match, pattern)) found.push_back({match[2], match[1] == "\""});
  return found;
}

// Path from the root -> what it includes.
std::map<std::string, std::vector<Include>> read_tree() {
  std::map<std::string, std::vector<Include>> tree;
  for (const char* folder : {"harness", "reference", "kernels", "experiments", "tests"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder))
      if (entry.is_regular_file() && is_source(entry.path())) {
        std::ifstream file(entry.path());
        tree[fs::relative(entry.path(), kRoot).generic_string()] = includes_of(file);
      }
  return tree;
}

bool starts_with_any(const std::string& path, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(), [&](const auto& prefix) { return path.starts_with(prefix); });
}

bool is_json_library(const Include& include) { return include.target.starts_with("nlohmann/"); }
bool is_eigen(const Include& include) {
  return include.target.starts_with("Eigen/") || include.target.starts_with("unsupported/Eigen");
}
bool is_test_library(const Include& include) { return include.target.starts_with("catch2/"); }

// A sentence when `from` may not include `include`.
std::string broken_rule(const std::string& from, const Include& include) {
  const std::string& to = include.target;
  if (include.quoted) {
    if (from.starts_with("harness/") && !to.starts_with("harness/")) return "harness includes nothing of ours";
    if (from.starts_with("reference/") && !starts_with_any(to, {"harness/", "reference/"}))
      return "reference includes harness and reference only";
    if (from.starts_with("kernels/") && !starts_with_any(to, {"harness/", "kernels/"}) &&
        !std::regex_match(to, std::regex("reference/[a-z_]+/problem\\.hpp")))
      return "kernels include harness, kernels and an operator's problem.hpp only";
    if (!from.starts_with("tests/") && to.starts_with("tests/")) return "only tests include tests";
  }
  if (is_eigen(include) && !starts_with_any(from, {"reference/", "tests/"})) return "Eigen only in reference and tests";
  if (is_json_library(include) && !from.starts_with("reference/checkpoint/") &&  // headers of files are JSON
      starts_with_any(from, {"reference/", "kernels/", "harness/operator/", "harness/judge/", "harness/measure/"}))
    return "nlohmann_json only where JSON is read or written";
  return "";
}

}  // namespace

TEST_CASE("tree: every include follows the arrows between folders", "[tree]") {
  const auto tree = read_tree();
  REQUIRE(tree.size() > 20);
  for (const auto& [from, includes] : tree)
    for (const Include& include : includes) {
      INFO(from << " includes " << include.target);
      CHECK(broken_rule(from, include) == "");
    }
}

TEST_CASE("tree: no JSON, Eigen or test header reaches nvcc", "[tree]") {
  const auto tree = read_tree();
  for (const auto& [source, ignored] : tree) {
    if (!source.ends_with(".cu")) continue;
    std::set<std::string> seen;
    std::vector<std::string> open{source};
    while (!open.empty()) {
      const std::string file = open.back();
      open.pop_back();
      const auto found = tree.find(file);
      if (found == tree.end() || !seen.insert(file).second) continue;
      for (const Include& include : found->second) {
        INFO(source << " reaches " << include.target << " through " << file);
        CHECK_FALSE((is_eigen(include) || is_json_library(include) || is_test_library(include)));
        if (include.quoted) open.push_back(include.target);
      }
    }
  }
}

TEST_CASE("tree: the include rules tell right from wrong", "[tree]") {
  CHECK(broken_rule("harness/run/a.cpp", {"kernels/matmul/b.cuh", true}) != "");
  CHECK(broken_rule("reference/matmul/a.cpp", {"kernels/matmul/b.cuh", true}) != "");
  CHECK(broken_rule("kernels/matmul/a.cu", {"reference/matmul/operator.hpp", true}) != "");
  CHECK(broken_rule("kernels/matmul/a.cu", {"reference/matmul/problem.hpp", true}) == "");
  CHECK(broken_rule("harness/judge/a.cpp", {"Eigen/Core", false}) != "");
  CHECK(broken_rule("harness/measure/a.cpp", {"nlohmann/json.hpp", false}) != "");
  CHECK(broken_rule("reference/matmul/a.cpp", {"nlohmann/json.hpp", false}) != "");
  CHECK(broken_rule("harness/sweep/a.cpp", {"nlohmann/json.hpp", false}) == "");
  CHECK(broken_rule("reference/checkpoint/a.cpp", {"nlohmann/json.hpp", false}) == "");
}
