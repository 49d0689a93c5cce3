// NVTX is in builds with the CUDA Toolkit only; elsewhere ranges do nothing and there is nothing to test.
#ifdef INFEROMETER_NVTX_RECORDER

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

namespace {

std::vector<std::string> lines_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What a tool sees of rows that are right, wrong, throw, lack memory and are unsupported.
const std::vector<std::string>& recorded() {
  static const std::vector<std::string> lines = [] {
    const auto log = std::filesystem::temp_directory_path() / ("inferometer_nvtx_" + std::to_string(getpid()));
    const std::string command = "NVTX_INJECTION64_PATH='" INFEROMETER_NVTX_RECORDER "' INFEROMETER_NVTX_LOG='" +
                                log.string() + "' '" INFEROMETER_NVTX_RANGES "' >/dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
    std::vector<std::string> all = lines_of(log);
    std::filesystem::remove(log);
    return all;
  }();
  return lines;
}

// The names of the ranges of row `variant`, each behind a dot for every range it lies in.
std::vector<std::string> ranges_of(const std::string& variant) {
  const std::string push = "push inferometer ";
  std::vector<std::string> names;
  int depth = 0;
  bool inside = false;
  for (const std::string& line : recorded()) {
    if (line.starts_with(push)) {
      if (depth == 0) inside = line == push + "test_copy/" + variant + "/0123456789ab";
      if (inside && depth > 0)
        names.push_back(std::string(static_cast<std::size_t>(depth), '.') + line.substr(push.size()));
      ++depth;
    } else if (line == "pop inferometer") {
      --depth;
    }
    REQUIRE(depth >= 0);
  }
  REQUIRE(depth == 0);
  return names;
}

std::size_t count(const std::string& start) {
  std::size_t found = 0;
  for (const std::string& line : recorded()) found += line.starts_with(start) ? 1U : 0U;
  return found;
}

}  // namespace

TEST_CASE("nvtx: every range lies in our one domain under a registered string, each registered once",
          "[measure][nvtx]") {
  CHECK(recorded().front() == "domain inferometer");
  CHECK(count("domain") == 1);
  CHECK(count("push inferometer (not registered)") == 0);
  CHECK(count("push") == count("push inferometer "));
  CHECK(count("register inferometer measure") == 1);
  CHECK(count("register inferometer test_copy/cpu.right/0123456789ab") == 1);
  CHECK(count("push inferometer test_copy/") == 6);
}

TEST_CASE("nvtx: a row's phases lie side by side in its range", "[measure][nvtx]") {
  CHECK(ranges_of("cpu.right") == std::vector<std::string>{".prepare", ".check", ".warm-up", ".measure", ".check"});
}

TEST_CASE("nvtx: a row that fails closes what it opened", "[measure][nvtx]") {
  CHECK(ranges_of("cpu.zeros") == std::vector<std::string>{".prepare", ".check"});
  CHECK(ranges_of("cpu.throws") == std::vector<std::string>{".prepare", ".check"});
  CHECK(ranges_of("cpu.throws_int") == std::vector<std::string>{".prepare", ".check"});
  CHECK(ranges_of("cpu.greedy").empty());
  CHECK(ranges_of("cpu.choosy").empty());
  CHECK(count("push") == count("pop"));
}

TEST_CASE("nvtx: without a tool a program with ranges runs as ever", "[measure][nvtx]") {
  CHECK(std::system("'" INFEROMETER_NVTX_RANGES "' >/dev/null") == 0);
}

#endif
