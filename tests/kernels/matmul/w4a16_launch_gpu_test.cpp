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
std::vector<MatmulProblem> large_problems() {
  std::vector<MatmulProblem> all;
  for (const std::int64_t bits : {4, 8}) {
    for (const std::int64_t m : {1, 16, 64, 257})
      all.push_back({.m = m, .n = 4096, .k = 4096, .bits = bits, .group_size = 128});
    for (const std::int64_t m : {150, 256})  // tiles of more than 128 tokens that two blocks share
      all.push_back({.m = m, .n = 8192, .k = 8192, .bits = bits, .group_size = 128});
    all.push_back({.m = 8, .n = 1000, .k = 4104, .bits = bits, .group_size = 64});
    all.push_back({.m = 100, .n = 1441, .k = 4104, .bits = bits, .group_size = 32, .symmetric = false});
    all.push_back({.m = 1000, .n = 8000, .k = 520, .bits = bits, .dtype = Dtype::bf16});
  }
  return all;
}

// Both kernels too, and tiles that four blocks share.
std::vector<MatmulProblem> small_problems() {
  std::vector<MatmulProblem> all;
  for (const std::int64_t bits : {4, 8}) {
    all.push_back({.m = 8, .n = 1000, .k = 1032, .bits = bits, .group_size = 64});
    all.push_back({.m = 100, .n = 441, .k = 1032, .bits = bits, .group_size = 32, .symmetric = false});
    all.push_back({.m = 300, .n = 1500, .k = 264, .bits = bits, .dtype = Dtype::bf16});
  }
  return all;
}

void check_same_bits(const std::vector<MatmulProblem>& problems, int repeats) {
  const std::unique_ptr<Device> device = gpu();
  for (const MatmulProblem& p : problems) {
    INFO(to_string(quantized_fields(p)));
    PreparedMatmul matmul(*device, weight_only_variant(p), quantized_fields(p), 1);
    matmul.launch();
    const std::vector<std::byte> first = matmul.y();
    for (int repeat = 0; repeat < repeats; ++repeat) {
      matmul.poison_y();
      matmul.launch();
      CHECK(matmul.y() == first);
    }
  }
}

void check_streams(const std::vector<MatmulProblem>& problems, int repeats) {
  const std::unique_ptr<Device> device = gpu();
  for (const MatmulProblem& p : problems) {
    INFO(to_string(quantized_fields(p)));
    check_two_streams(*device, weight_only_variant(p), quantized_fields(p), repeats);
  }
}

TEST_CASE("matmul weight-only: every launch gives the same bits", "[matmul][gpu][large]") {
  check_same_bits(large_problems(), 20);
}

TEST_CASE("matmul weight-only: every launch of a small product gives the same bits", "[matmul][gpu]") {
  check_same_bits(small_problems(), 2);
}

TEST_CASE("matmul weight-only: two streams at once do not meet", "[matmul][gpu][large]") {
  check_streams(large_problems(), 20);
}

TEST_CASE("matmul weight-only: two streams of small products at once do not meet", "[matmul][gpu]") {
  check_streams(small_problems(), 2);
}

}  // namespace
}  // namespace inferometer::test
