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
                                              {.m = 1000, .n = 3000, .k = 512},
                                              {.m = 64, .n = 4096, .k = 4096, .w_transposed = true},
                                              {.m = 257, .n = 1448, .k = 4104, .w_transposed = true}};

// Tiles of all sorts too, but few of them.
const std::vector<MatmulProblem> kSmallProblems = {{.m = 1, .n = 512, .k = 1032},
                                                   {.m = 257, .n = 600, .k = 520},
                                                   {.m = 1, .n = 512, .k = 1032, .w_transposed = true},
                                                   {.m = 257, .n = 600, .k = 520, .w_transposed = true}};

void check_same_bits(const std::vector<MatmulProblem>& problems, int repeats) {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : problems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      PreparedMatmul matmul(*device, variant, matmul_fields(problem), 1);
      matmul.launch();
      const std::vector<std::byte> first = matmul.y();
      for (int repeat = 0; repeat < repeats; ++repeat) {
        matmul.poison_y();
        matmul.launch();
        CHECK(matmul.y() == first);
      }
    }
  }
}

void check_streams(const std::vector<MatmulProblem>& problems, int repeats) {
  const std::unique_ptr<Device> device = gpu();
  for (const std::string& variant : kMatmulVariants) {
    for (const MatmulProblem& problem : problems) {
      INFO(variant << " " << to_string(matmul_fields(problem)));
      check_two_streams(*device, variant, matmul_fields(problem), repeats);
    }
  }
}

TEST_CASE("matmul: every launch gives the same bits and leaves its workspace usable", "[matmul][gpu][large]") {
  check_same_bits(kProblems, 20);
}

TEST_CASE("matmul: every launch of a small product gives the same bits and leaves its workspace usable",
          "[matmul][gpu]") {
  check_same_bits(kSmallProblems, 2);
}

TEST_CASE("matmul: two streams at once do not meet", "[matmul][gpu][large]") { check_streams(kProblems, 20); }

TEST_CASE("matmul: two streams of small products at once do not meet", "[matmul][gpu]") {
  check_streams(kSmallProblems, 2);
}

}  // namespace
}  // namespace inferometer::test
