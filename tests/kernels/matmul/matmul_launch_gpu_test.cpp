// What must hold between launches of cublas.f16 and cuda.f16_sm80: the same bits, a reusable workspace, streams apart.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/kernels/matmul/matmul_problem.hpp"
#include "tests/kernels/matmul/prepared_matmul.hpp"

namespace inferometer::test {
namespace {

// Whole tiles, tiles shared by two blocks and by many, and rows of Y that are not 16-byte aligned.
const std::vector<MatmulProblem> kProblems = {{.m = 1, .n = 4096, .k = 4096},
                                              {.m = 64, .n = 4096, .k = 4096},
                                              {.m = 100, .n = 1441, .k = 4104},
                                              {.m = 257, .n = 4096, .k = 4096},
                                              {.m = 1000, .n = 3000, .k = 512}};

TEST_CASE("matmul: every launch gives the same bits and leaves its workspace usable", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : kProblems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      PreparedMatmul matmul(*device, variant, matmul_fields(problem), 1);
      matmul.launch();
      const std::vector<std::byte> first = matmul.y();
      for (int repeat = 0; repeat < 20; ++repeat) {
        matmul.poison_y();
        matmul.launch();
        CHECK(matmul.y() == first);
      }
    }
  }
}

TEST_CASE("matmul: two streams at once do not meet", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : kProblems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      check_two_streams(*device, variant, matmul_fields(problem));
    }
  }
}

}  // namespace
}  // namespace inferometer::test
