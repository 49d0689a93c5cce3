// test_copy: y = x, with variants that fail in every way a kernel can. For the tests of the machinery that runs rows.
#pragma once

#include <cstdint>
#include <string_view>

namespace inferometer::test {

struct CopyProblem {
  std::int64_t n = 1;
  std::int64_t sleep_ms = 0;  // cpu.right: of each launch
  std::int64_t dies_at = 0;   // cpu.dies: 0 in prepare, else the launch that kills its process
  bool not_finite = false;    // the operator's metrics are 0/0 and 1/0
};

struct CopyTensors {
  const float* x = nullptr;  // [n]
  float* y = nullptr;        // [n]
};

struct Copy {
  static constexpr std::string_view kName = "test_copy";
  using Problem = CopyProblem;
  using Tensors = CopyTensors;
};

// Set in the environment of a worker, kills it before its main.
inline constexpr const char* kDieAtStart = "TEST_COPY_DIE_AT_START";

// In the environment of a worker, the path of a file: while it is there, launches of cpu.gated wait.
inline constexpr const char* kGate = "TEST_COPY_GATE";

// What cuda.poisons leaves behind: a device that answers every call with an error.
extern bool device_poisoned;

}  // namespace inferometer::test
