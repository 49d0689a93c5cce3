#include "reference/matmul/metrics.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "harness/judge/sample.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/matmul/tensors.hpp"
#include "reference/matmul/weights.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;

constexpr std::int64_t kMostRows = 256;

// Squares of what quantising changed, and of what there was.
struct Squares {
  double error = 0;
  double weight = 0;
};

Squares squares_of_row(const Problem& p, const Inputs& inputs, std::int64_t row) {
  std::vector<float> exact(static_cast<std::size_t>(p.k));
  fill_synthetic_row(inputs.seed(), row, exact);
  const std::vector<double> stored = read_weights(p, inputs, row);
  Squares sums;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double error = stored[i] - exact[i];
    sums.error += error * error;
    sums.weight += static_cast<double>(exact[i]) * exact[i];
  }
  return sums;
}

// ||W stored - W|| / ||W|| over a sample of rows.
double quantization_rel_error(const Problem& p, const Inputs& inputs, int threads) {
  const std::vector<std::int64_t> rows = sample_rows(p.n, kMostRows, inputs.seed());
  std::vector<Squares> squares(rows.size());
  parallel_for(std::ssize(rows), threads, [&](std::int64_t i) {
    const auto r = static_cast<std::size_t>(i);
    squares[r] = squares_of_row(p, inputs, rows[r]);
  });
  Squares sums;
  for (const Squares& of_row : squares) {  // in their order: the same sums for any number of threads
    sums.error += of_row.error;
    sums.weight += of_row.weight;
  }
  return std::sqrt(sums.error / sums.weight);
}

}  // namespace

std::vector<Metric> matmul_metrics(const Problem& p, const Inputs& inputs, std::span<const void* const> /*tensors*/,
                                   int threads) {
  double bytes = 0;
  for (const TensorSpec& spec : matmul_tensors(p))
    if (spec.role == Role::weights) bytes += static_cast<double>(spec.bytes());
  const double weights = static_cast<double>(p.n) * static_cast<double>(p.k);
  std::vector<Metric> metrics{{"weights_bytes", bytes},
                              {"weights_bits_effective", 8 * bytes / weights},
                              {"weights_of_f16_ratio", bytes / (2 * weights)},
                              {"weights_of_f32_ratio", bytes / (4 * weights)}};
  if (p.is_quantized()) metrics.push_back({"quantization_rel_error", quantization_rel_error(p, inputs, threads)});
  return metrics;
}

std::vector<MetricInfo> matmul_metric_docs() {
  return {{"weights_bytes", "of W as it is stored: elements or codes, scales and zero points"},
          {"weights_bits_effective", "bits of a weight, with its share of scales and zero points"},
          {"weights_of_f16_ratio", "weights_bytes over what W takes in 16-bit elements"},
          {"weights_of_f32_ratio", "weights_bytes over what W takes in 32-bit elements"},
          {"quantization_rel_error",
           "relative L2 error of the weights from rounding them to nearest, on synthetic weights with heavy tails and "
           "outlier channels; of the format, not of the kernel"}};
}

}  // namespace inferometer
