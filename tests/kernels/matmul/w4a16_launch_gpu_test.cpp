// What must hold between launches of cuda.w4a16 and cuda.w8a16: the same bits, streams apart, no cliffs.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "harness/measure/device.hpp"
#include "tests/kernels/matmul/prepared_matmul.hpp"
#include "tests/kernels/matmul/weight_only_problem.hpp"

namespace inferometer::test {
namespace {

// Both kernels, whole tiles and shared ones, blocks with one tile and with several, rows that are not 16-byte aligned.
std::vector<MatmulProblem> problems() {
  std::vector<MatmulProblem> all;
  for (const std::int64_t bits : {4, 8}) {
    for (const std::int64_t m : {1, 16, 64, 257})
      all.push_back({.m = m, .n = 4096, .k = 4096, .bits = bits, .group_size = 128});
    all.push_back({.m = 8, .n = 1000, .k = 4104, .bits = bits, .group_size = 64});
    all.push_back({.m = 100, .n = 1441, .k = 4104, .bits = bits, .group_size = 32, .symmetric = false});
    all.push_back({.m = 1000, .n = 8000, .k = 520, .bits = bits, .dtype = Dtype::bf16});
  }
  return all;
}

TEST_CASE("matmul weight-only: every launch gives the same bits", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const MatmulProblem& p : problems()) {
    INFO(to_string(quantized_fields(p)));
    PreparedMatmul matmul(*device, weight_only_variant(p), quantized_fields(p), 1);
    matmul.launch();
    const std::vector<std::byte> first = matmul.y();
    for (int repeat = 0; repeat < 20; ++repeat) {
      matmul.poison_y();
      matmul.launch();
      CHECK(matmul.y() == first);
    }
  }
}

TEST_CASE("matmul weight-only: two streams at once do not meet", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  for (const MatmulProblem& p : problems()) {
    INFO(to_string(quantized_fields(p)));
    PreparedMatmul one(*device, weight_only_variant(p), quantized_fields(p), 1);
    PreparedMatmul other(*device, weight_only_variant(p), quantized_fields(p), 2);
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

TEST_CASE("matmul weight-only: one token more costs at most 30 % more time up to 128", "[matmul][gpu]") {
  const std::unique_ptr<Device> device = gpu();
  const auto median_ns = [&](std::int64_t m) {
    const MatmulProblem p = {.m = m, .n = 8192, .k = 8192, .bits = 4, .group_size = 128};
    PreparedMatmul matmul(*device, "cuda.w4a16", quantized_fields(p), 1);
    const MeasureConfig config{.min_samples = 20, .max_samples = 60, .max_seconds = 0.2};
    return device->time([&](int, const Launch& launch) { matmul.launch_on(launch.stream); }, 1, config)
        .isolated.median_ns;
  };
  for (const std::int64_t m : {1, 8, 16, 32, 64, 96, 127}) {
    const double before = median_ns(m);
    const double after = median_ns(m + 1);
    INFO("m=" << m << ": " << before << " ns, m=" << m + 1 << ": " << after << " ns");
    CHECK(after <= 1.3 * before);
  }
}

}  // namespace
}  // namespace inferometer::test
