// cpu_tests. The supervisor starts its own executable again as a worker, so this program must be able to be one.
#define CATCH_CONFIG_RUNNER
#include "tests/support/catch.hpp"

#include <string_view>

#include "harness/run/worker.hpp"

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "worker") return inferometer::worker_main(argc, argv);
  return Catch::Session().run(argc, argv);
}
