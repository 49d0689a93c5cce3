// gpu_tests: returns 77, which ctest shows as Skipped, where no GPU can be used.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.hpp"

#include <iostream>
#include <string>
#include <string_view>

#include "harness/measure/device.hpp"
#include "harness/run/worker.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return inferometer::worker_main(argc, argv);
  std::string reason;
  if (inferometer::make_gpu_device(0, reason) == nullptr) {
    std::cerr << "gpu_tests skipped: " << reason << '\n';
    return 77;
  }
  return Catch::Session().run(argc, argv);
}
