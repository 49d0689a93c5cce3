#include "reference/matmul/metrics.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "harness/judge/sample.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/common/eigen.hpp"
#include "reference/matmul/expected.hpp"
#include "reference/matmul/tensors.hpp"
#include "reference/matmul/weights.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::int64_t kMostRows = 256;   // of W
constexpr std::int64_t kMostTokens = 16;  // of X

// Sampled tokens, one a column: as they are stored, and as the product takes them.
struct Tokens {
  MatrixXd exact;
  MatrixXd taken;

  Tokens(const Problem& p, const Inputs& inputs) {
    const std::vector<std::int64_t> tokens = sample_rows(p.m, kMostTokens, inputs.seed());
    exact.resize(p.k, std::ssize(tokens));
    taken.resize(p.k, std::ssize(tokens));
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) {
      const std::int64_t token = tokens[static_cast<std::size_t>(i)];
      const std::vector<float> stored = inputs.read("x", token * p.k, p.k);
      const std::vector<double> read = read_token(p, inputs, token);
      exact.col(i) = Eigen::Map<const Eigen::VectorXf>(stored.data(), p.k).cast<double>();
      taken.col(i) = Eigen::Map<const VectorXd>(read.data(), p.k);
    }
  }
};

// Squares of what quantising changed, and of what there was.
struct Squares {
  double error = 0;
  double value = 0;

  void add(const Squares& other) {
    error += other.error;
    value += other.value;
  }
  double relative_error() const { return std::sqrt(error / value); }
};

struct RowErrors {
  Squares weights;
  Squares outputs;
};

RowErrors errors_of_row(const Problem& p, const Inputs& inputs, const Tokens& tokens, std::int64_t row) {
  std::vector<float> full(static_cast<std::size_t>(p.k));
  fill_synthetic_row(inputs.seed(), row, full);
  const std::vector<double> read = read_weights(p, inputs, row);
  const VectorXd exact = Eigen::Map<const Eigen::VectorXf>(full.data(), p.k).cast<double>();
  const Eigen::Map<const VectorXd> stored(read.data(), p.k);
  const VectorXd exact_outputs = tokens.exact.transpose() * exact;
  const VectorXd outputs = tokens.taken.transpose() * stored;
  return {.weights = {.error = (stored - exact).squaredNorm(), .value = exact.squaredNorm()},
          .outputs = {.error = (outputs - exact_outputs).squaredNorm(), .value = exact_outputs.squaredNorm()}};
}

// Over a sample of rows of W and of tokens.
RowErrors quantization_errors(const Problem& p, const Inputs& inputs, int threads) {
  const Tokens tokens(p, inputs);
  const std::vector<std::int64_t> rows = sample_rows(p.n, kMostRows, inputs.seed());
  std::vector<RowErrors> errors(rows.size());
  parallel_for(std::ssize(rows), threads, [&](std::int64_t i) {
    const auto r = static_cast<std::size_t>(i);
    errors[r] = errors_of_row(p, inputs, tokens, rows[r]);
  });
  RowErrors sums;
  for (const RowErrors& of_row : errors) {  // in their order: the same sums for any number of threads
    sums.weights.add(of_row.weights);
    sums.outputs.add(of_row.outputs);
  }
  return sums;
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
  if (!p.is_quantized()) return metrics;
  const RowErrors errors = quantization_errors(p, inputs, threads);
  metrics.push_back({"quantization_rel_error", errors.weights.relative_error()});
  metrics.push_back({"output_rel_error", errors.outputs.relative_error()});
  return metrics;
}

std::vector<MetricInfo> matmul_metric_docs() {
  return {{"weights_bytes", "of W as it is stored: elements or codes, scales and zero points"},
          {"weights_bits_effective", "bits of a weight, with its share of scales and zero points"},
          {"weights_of_f16_ratio", "weights_bytes over what W takes in 16-bit elements"},
          {"weights_of_f32_ratio", "weights_bytes over what W takes in 32-bit elements"},
          {"quantization_rel_error",
           "relative L2 error of the weights from rounding them to nearest, on synthetic weights with heavy tails and "
           "outlier channels; of the format, not of the kernel"},
          {"output_rel_error",
           "the same of Y, from quantising weights and, with activation_bits 8, activations, which are normal and have "
           "no outliers"}};
}

}  // namespace inferometer
