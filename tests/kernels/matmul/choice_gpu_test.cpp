// What cublas.f16, cublas.int8 and cuda.f16_sm90 say that they chose.
#include <cstdint>
#include <memory>
#include <string>

#include "tests/kernels/matmul/matmul_problem.hpp"
#include "tests/kernels/matmul/prepared_matmul.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"

namespace inferometer::test {
namespace {

// The whole number behind `before`; -1 without one.
std::int64_t number_after(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos || text.find_first_of("0123456789", at) != at + before.size()) return -1;
  return std::stoll(text.substr(at + before.size()));
}

void check_cublas(const std::string& variant, const Fields& fields) {
  const std::unique_ptr<Device> device = gpu();
  const std::string choice = PreparedMatmul(*device, variant, fields, 1).choice();
  INFO(variant << " " << to_string(fields) << ": " << choice);
  const std::int64_t timed = number_after(choice, " of ");
  CHECK(timed >= 1);
  CHECK(timed <= 32);
  CHECK(number_after(choice, "proposal ") >= 1);
  CHECK(number_after(choice, "proposal ") <= timed);
  CHECK(number_after(choice, "algorithm ") >= 0);
  CHECK(number_after(choice, "tile id ") >= 0);
  CHECK(number_after(choice, "split-k ") >= 0);
  CHECK(number_after(choice, "workspace ") >= 0);
  CHECK(number_after(choice, "workspace ") <= std::int64_t{32} << 20);
}

TEST_CASE("matmul choice: cuBLASLt's algorithm is named with the number of those timed", "[matmul][gpu][choice]") {
  if (under_racecheck()) return;  // it fails in cuBLAS's products: sanitizer.hpp
  for (const MatmulProblem& problem :
       {MatmulProblem{.m = 1, .n = 4096, .k = 4096}, MatmulProblem{.m = 512, .n = 1024, .k = 1024},
        MatmulProblem{.m = 64, .n = 512, .k = 512, .w_transposed = true}})
    check_cublas("cublas.f16", matmul_fields(problem));
  check_cublas("cublas.int8", quantized_fields({.m = 64, .n = 1024, .k = 1024, .bits = 8, .activation_bits = 8}));
}

TEST_CASE("matmul choice: cuda.f16_sm90 names its plan", "[matmul][gpu][choice]") {
  const std::unique_ptr<Device> device = gpu();
  if (device->gpu()->sm < 90) return;
  const std::string choice =
      PreparedMatmul(*device, "cuda.f16_sm90", matmul_fields({.m = 16, .n = 4096, .k = 4096}), 1).choice();
  INFO(choice);
  CHECK(number_after(choice, "tile of ") >= 16);
  CHECK(number_after(choice, "split-k ") >= 1);
}

}  // namespace
}  // namespace inferometer::test
