// What a right kernel of rounded weights errs by, of few terms and of many, against the tolerance of matmul.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/judge/tolerance.hpp"
#include "harness/operator/dtype.hpp"
#include "reference/matmul/expected.hpp"
#include "reference/matmul/tensors.hpp"
#include "reference/matmul/weights.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

struct Largest {
  double error = 0;  // over the root mean square of Y
  double value = 0;
};

double rounded(double value) { return f16_value(f16_bits(static_cast<float>(value))); }

// A kernel that rounds each weight to f16 before the product, sums exactly, and rounds Y.
Largest largest_of(const MatmulProblem& p, std::uint64_t seed) {
  const std::vector<TensorSpec> specs = matmul_tensors(p);
  const Inputs inputs(specs, seed);
  const std::vector<float> x = inputs.read("x", 0, p.m * p.k);
  Largest largest;
  double squares = 0;
  for (std::int64_t j = 0; j < p.n; ++j) {
    const std::vector<double> weights = read_weights(p, inputs, j);
    for (std::int64_t i = 0; i < p.m; ++i) {
      const float* token = x.data() + i * p.k;
      double exact = 0;
      double rounded_weights = 0;
      for (std::size_t t = 0; t < weights.size(); ++t) {
        exact += token[t] * weights[t];
        rounded_weights += token[t] * rounded(weights[t]);
      }
      const double y = rounded(rounded_weights);
      largest.error = std::max(largest.error, std::abs(y - exact));
      largest.value = std::max(largest.value, std::abs(exact));
      squares += exact * exact;
    }
  }
  const double rms = std::sqrt(squares / static_cast<double>(p.m * p.n));
  return {.error = largest.error / rms, .value = largest.value / rms};
}

}  // namespace

TEST_CASE("matmul tolerance: right products of few terms pass, with outliers among them", "[matmul][reference]") {
  double beyond_normal = 0;
  for (const std::int64_t k : {8, 16, 24, 64, 256}) {
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      const MatmulProblem p{.m = 200, .n = 1000, .k = k, .bits = 4, .group_size = 64, .symmetric = false};
      CAPTURE(k, seed);
      const Largest largest = largest_of(p, seed);
      CHECK(largest.error < matmul_tolerance(p, "y").max_error_over_rms);
      CHECK(largest.value < largest_over_rms(k, kSyntheticTails));
      beyond_normal = std::max(beyond_normal, largest.value);
    }
  }
  CHECK(beyond_normal > 10);  // of normal sums 5.5: few terms do need more
}
