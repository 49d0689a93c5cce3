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
      PreparedMatmul one(*device, variant, matmul_fields(problem), 1);
      PreparedMatmul other(*device, variant, matmul_fields(problem), 2);
      one.launch();
      const std::vector<std::byte> one_alone = one.y();
      other.launch();
      const std::vector<std::byte> other_alone = other.y();
      CHECK(one_alone != other_alone);
      one.poison_y();
      other.poison_y();
      for (int repeat = 0; repeat < 20; ++repeat) {
        one.launch();
        other.launch();
      }
      CHECK(one.y() == one_alone);
      CHECK(other.y() == other_alone);
    }
  }
}

TEST_CASE("matmul: one token more costs at most 30 % more time", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  const auto median_ns = [&](std::int64_t m) {
    PreparedMatmul matmul(*device, "cuda.f16_sm80", matmul_fields({.m = m, .n = 4096, .k = 4096}), 1);
    const MeasureConfig config{.min_samples = 20, .max_samples = 60, .max_seconds = 0.2};
    return device->time([&](int, const Launch& launch) { matmul.launch_on(launch.stream); }, 1, config)
        .isolated.median_ns;
  };
  for (const std::int64_t m : {1, 7, 8, 15, 16, 32, 48, 63, 64, 80, 96, 127, 128, 160, 192, 224, 256}) {
    const double before = median_ns(m);
    const double after = median_ns(m + 1);
    INFO("m=" << m << ": " << before << " ns, m=" << m + 1 << ": " << after << " ns");
    CHECK(after <= 1.3 * before);
  }
}

}  // namespace
}  // namespace inferometer::test
