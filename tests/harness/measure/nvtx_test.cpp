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

}  // namespace

TEST_CASE("nvtx: ranges lie in our domain, nest, and register each name once", "[measure][nvtx]") {
  const auto log = std::filesystem::temp_directory_path() / ("inferometer_nvtx_" + std::to_string(getpid()));
  const std::string command = "NVTX_INJECTION64_PATH='" INFEROMETER_NVTX_RECORDER "' INFEROMETER_NVTX_LOG='" +
                              log.string() + "' '" INFEROMETER_NVTX_RANGES "'";
  REQUIRE(std::system(command.c_str()) == 0);
  CHECK(lines_of(log) == std::vector<std::string>{
                             "domain inferometer",
                             "register inferometer matmul/cpu.eigen/3f9a1c20b7de",
                             "push inferometer matmul/cpu.eigen/3f9a1c20b7de",
                             "register inferometer prepare",
                             "push inferometer prepare",
                             "pop inferometer",
                             "register inferometer measure",
                             "push inferometer measure",
                             "pop inferometer",
                             "pop inferometer",
                             "register inferometer matmul/cpu.eigen/000000000001",
                             "push inferometer matmul/cpu.eigen/000000000001",
                             "push inferometer measure",
                             "pop inferometer",
                             "pop inferometer",
                         });
  std::filesystem::remove(log);
}

TEST_CASE("nvtx: without a tool a program with ranges runs as ever", "[measure][nvtx]") {
  CHECK(std::system("'" INFEROMETER_NVTX_RANGES "'") == 0);
}

#endif
