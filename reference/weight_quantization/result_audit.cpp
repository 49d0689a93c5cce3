#include "reference/weight_quantization/result_audit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "reference/common/eigen.hpp"
#include "reference/weight_quantization/layer_source.hpp"
#include "reference/weight_quantization/obq_recount.hpp"
#include "reference/weight_quantization/result_tensor.hpp"

namespace inferometer {
namespace {

// Row by row, as layers and results lie in memory.
using MatrixXd = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Problem = WeightQuantizationProblem;

constexpr std::int64_t kMostRecountedInputs = 512;  // k^3 on one thread
// Of sums in another order, and of GPTQ's objective, which is the difference of one with damping and the damping's.
constexpr double kSameObjective = 1e-6;

std::string place(const char* name, std::int64_t row, std::int64_t column) {
  return std::string(name) + "[" + std::to_string(row) + "][" + std::to_string(column) + "]";
}

std::string off_grid(const QuantizedWeights& q) {
  const std::int32_t largest = q.format.largest_code();
  for (std::int64_t j = 0; j < q.n; ++j) {
    for (std::int64_t g = 0; g < q.groups(); ++g) {
      const Grid grid = q.grid(j, g);
      if (!std::isfinite(grid.scale) || grid.scale < 0)
        return place("scales", j, g) + " is " + std::to_string(grid.scale) + ", neither 0 nor positive and finite";
      if (grid.zero > largest)
        return place("zeros", j, g) + " is " + std::to_string(grid.zero) + ", beyond " + std::to_string(largest);
    }
    for (std::int64_t i = 0; i < q.k; ++i)
      if (const std::int32_t code = q.codes[static_cast<std::size_t>(j * q.k + i)];
          code < q.format.least_code() || code > largest)
        return place("codes", j, i) + " is " + std::to_string(code) + ", not in [" +
               std::to_string(q.format.least_code()) + ", " + std::to_string(largest) + "]";
  }
  return {};
}

std::string wrong_inputs(const QuantizedWeights& q) {
  for (const float scale : q.input_scales)
    if (!std::isfinite(scale) || scale <= 0)
      return "an input scale is " + std::to_string(scale) + ", not positive and finite";
  std::vector<std::int64_t> members(static_cast<std::size_t>(q.groups()));
  for (std::int64_t i = 0; i < q.k; ++i) {
    const std::int64_t group = q.group_of(i);
    if (group < 0 || group >= q.groups())
      return "input " + std::to_string(i) + " is in group " + std::to_string(group) + " of " +
             std::to_string(q.groups());
    ++members[static_cast<std::size_t>(group)];
  }
  for (std::int64_t g = 0; g < q.groups(); ++g)
    if (const std::int64_t size = std::min(q.group_width(), q.k - g * q.group_width());
        members[static_cast<std::size_t>(g)] != size)
      return "group " + std::to_string(g) + " has " + std::to_string(members[static_cast<std::size_t>(g)]) +
             " inputs, not " + std::to_string(size);
  return {};
}

MatrixXd to_double(const OwnedMatrix& matrix) {
  using Floats = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  return Eigen::Map<const Floats>(matrix.values.data(), matrix.rows, matrix.columns).cast<double>();
}

// The layer of a problem, and how far results are from it; by one thread and none of the quantisers' own functions.
class Layer {
 public:
  explicit Layer(const Problem& p) : p_(p), owned_(layer_weights(p, 1)), w_(to_double(owned_)) {}

  const OwnedMatrix& weights() const { return owned_; }
  const MatrixXd& w() const { return w_; }

  const MatrixXd& calibration() {
    if (x_.size() == 0) x_ = to_double(calibration_activations(p_, 1));
    return x_;
  }
  MatrixXd errors(const QuantizedWeights& q) const {
    MatrixXd d(q.n, q.k);
    for (std::int64_t j = 0; j < q.n; ++j)
      for (std::int64_t i = 0; i < q.k; ++i) d(j, i) = q.weight(j, i) - w_(j, i);
    return d;
  }
  double objective(const QuantizedWeights& q) {
    return (calibration() * errors(q).transpose()).squaredNorm() / static_cast<double>(p_.calibration_tokens);
  }
  // Each row by quantize_rtn.
  QuantizedWeights rounded() const {
    const GridFormat format{.bits = p_.bits, .symmetric = p_.symmetric, .scale_dtype = p_.scale_dtype};
    QuantizedWeights q = make_quantized_weights(p_.n, p_.k, format, p_.group_size);
    std::vector<std::int32_t> codes(static_cast<std::size_t>(p_.k));
    std::vector<Grid> grids(static_cast<std::size_t>(q.groups()));
    for (std::int64_t j = 0; j < p_.n; ++j) {
      quantize_rtn(format, owned_.view().row(j), q.group_width(), codes, grids);
      for (std::int64_t g = 0; g < q.groups(); ++g) q.set_grid(j, g, grids[static_cast<std::size_t>(g)]);
      std::transform(codes.begin(), codes.end(), q.codes.begin() + j * p_.k,
                     [](std::int32_t code) { return static_cast<std::int16_t>(code); });
    }
    return q;
  }

 private:
  const Problem& p_;
  OwnedMatrix owned_;
  MatrixXd w_;
  MatrixXd x_;
};

std::string other_codes(const QuantizedWeights& q, const std::vector<std::int16_t>& expected, const std::string& of) {
  const auto [found, should] = std::mismatch(q.codes.begin(), q.codes.end(), expected.begin());
  if (found == q.codes.end()) return {};
  const std::int64_t at = found - q.codes.begin();
  return place("codes", at / q.k, at % q.k) + " is " + std::to_string(*found) + ", " + of + " " +
         std::to_string(*should);
}

std::string unlike(const QuantizedWeights& q, const QuantizedWeights& expected, const std::string& of) {
  if (q.scales != expected.scales) return "a scale is not that of a group " + of;
  if (q.zeros != expected.zeros) return "a zero point is not that of a group " + of;
  return other_codes(q, expected.codes, of);
}

// Grid points are `scale` apart: no weight within the grid errs by more than half of that, and the nearest code is
// nearest also beyond its ends.
std::string not_nearest(const QuantizedWeights& q, const MatrixXd& w) {
  for (std::int64_t j = 0; j < q.n; ++j) {
    for (std::int64_t i = 0; i < q.k; ++i) {
      const Grid grid = q.grid(j, q.group_of(i));
      const double least = (q.format.least_code() - grid.zero) * static_cast<double>(grid.scale);
      const double largest = (q.format.largest_code() - grid.zero) * static_cast<double>(grid.scale);
      const double nearest = std::clamp(w(j, i), least, largest);
      // The quotient is rounded in f32 before it is rounded to an integer.
      const double allowed = (0.5 + 256 * 0x1p-24) * static_cast<double>(grid.scale);
      if (std::abs(q.weight(j, i) - nearest) > allowed)
        return place("codes", j, i) + " is worth " + std::to_string(q.weight(j, i)) + " for a weight of " +
               std::to_string(w(j, i)) + ", with a step of " + std::to_string(grid.scale);
    }
  }
  return {};
}

std::string worse_groups(const QuantizedWeights& q, Layer& layer) {
  const MatrixXd found = layer.errors(q);
  const MatrixXd plain = layer.errors(layer.rounded());
  for (std::int64_t j = 0; j < q.n; ++j) {
    for (std::int64_t begin = 0; begin < q.k; begin += q.group_width()) {
      const std::int64_t size = std::min(q.group_width(), q.k - begin);
      const double error = found.row(j).segment(begin, size).squaredNorm();
      const double allowed = plain.row(j).segment(begin, size).squaredNorm();
      if (error > allowed * (1 + 1e-12))
        return "the group at " + place("w", j, begin) + " has a squared error of " + std::to_string(error) +
               ", rounding one of " + std::to_string(allowed);
    }
  }
  return {};
}

std::string wrong_objective(const QuantizerResult& result, Layer& layer) {
  if (!result.objective) return "a method that is calibrated states no objective";
  const double counted = layer.objective(result.weights);
  if (std::abs(*result.objective - counted) <= kSameObjective * counted) return {};
  return "the objective is stated as " + std::to_string(*result.objective) + ", from the activations it is " +
         std::to_string(counted);
}

std::string audit_gptq(const Problem& p, std::string_view method, const QuantizerResult& result, Layer& layer) {
  const QuantizedWeights& q = result.weights;
  if (!result.damping) return {};  // rounded instead, with a warning
  if (p.source == "synthetic_uncorrelated" && q.group_index.empty() && method != "gptq_search")
    return unlike(q, layer.rounded(), "rounded to nearest");
  if (method != "gptq" || p.k > kMostRecountedInputs) return {};
  const MatrixXd& x = layer.calibration();
  Calibration calibration{.k = p.k, .tokens = p.calibration_tokens};
  const MatrixXd h = x.transpose() * x / static_cast<double>(p.calibration_tokens);
  if ((h.diagonal().array() <= 0).any()) return {};
  calibration.hessian.assign(h.data(), h.data() + h.size());
  const QuantizerGrid grid{.format = q.format, .group_size = p.group_size};
  return other_codes(q, recount_by_obq(layer.weights().view(), calibration, grid, *result.damping),
                     "by Optimal Brain Quantization");
}

}  // namespace

std::string audit_result(const Problem& p, std::string_view variant, std::span<const std::int32_t> elements) {
  MethodResult read;
  try {
    read = read_result(p, elements);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  const QuantizerResult& result = read.quantized;
  const QuantizedWeights& q = result.weights;
  if (std::string sentence = off_grid(q); !sentence.empty()) return sentence;
  if (std::string sentence = wrong_inputs(q); !sentence.empty()) return sentence;
  Layer layer(p);
  const std::string_view method = variant.substr(variant.find('.') + 1);
  if (method == "rtn") {
    if (std::string sentence = not_nearest(q, layer.w()); !sentence.empty()) return sentence;
    return unlike(q, layer.rounded(), "rounded by itself");
  }
  if (method == "rtn_search") return worse_groups(q, layer);
  if (std::string sentence = wrong_objective(result, layer); !sentence.empty()) return sentence;
  if (method == "awq") {
    const double rounded = layer.objective(layer.rounded());
    if (*result.objective > rounded * (1 + kSameObjective))
      return "the objective is " + std::to_string(*result.objective) + ", that of rounding " + std::to_string(rounded);
  }
  if (method.starts_with("gptq")) return audit_gptq(p, method, result, layer);
  return {};
}

}  // namespace inferometer
