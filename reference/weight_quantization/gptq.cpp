#include "reference/weight_quantization/gptq.hpp"

#include <algorithm>
#include <numeric>
#include <string>

#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/gptq_slab.hpp"
#include "reference/weight_quantization/inverse_factor.hpp"
#include "reference/weight_quantization/problem.hpp"
#include "reference/weight_quantization/rounding.hpp"

namespace inferometer {
namespace {

std::string text(double value) {
  std::string digits = std::to_string(value);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits;
}

void check_settings(const GptqSettings& settings) {
  if (!(settings.damping >= 0 && settings.damping <= 1))
    throw QuantizationError("damping must be 0 to 1, got " + std::to_string(settings.damping));
  if (settings.block < 1) throw QuantizationError("block must be at least 1, got " + std::to_string(settings.block));
}

// H of one layer: its live inputs, and U for some order and damping.
class Inverse {
 public:
  explicit Inverse(const Calibration& calibration) : calibration_(calibration), k_(calibration.k) {
    for (std::int64_t i = 0; i < k_; ++i) {
      diagonal_.push_back(calibration.hessian[static_cast<std::size_t>(i * k_ + i)]);
      live_.push_back(diagonal_.back() > 0);
    }
    const auto count = std::count(live_.begin(), live_.end(), true);
    const double sum = std::accumulate(diagonal_.begin(), diagonal_.end(), 0.0);
    mean_ = count > 0 ? sum / static_cast<double>(count) : 0;
  }

  const std::vector<double>& diagonal() const { return diagonal_; }
  const std::vector<bool>& live() const { return live_; }
  double mean() const { return mean_; }
  ConstSquare u() const { return {u_.data(), k_, k_}; }

  // Whether H + damping * mean * I could be factorised.
  bool factorize(const ColumnPlan& plan, double damping, int threads) {
    u_.resize(calibration_.hessian.size());
    Square reversed(u_.data(), k_, k_);
    const ConstSquare h(calibration_.hessian.data(), k_, k_);
    parallel_for(k_, threads, [&](std::int64_t row) {
      const std::int64_t from = input(plan, row);
      for (std::int64_t column = 0; column <= row; ++column) reversed(row, column) = h(from, input(plan, column));
      // An input that is always 0 moves nothing and is moved by nothing.
      reversed(row, row) = live_[static_cast<std::size_t>(from)] ? h(from, from) + damping * mean_ : 1;
    });
    return invert_to_upper_factor(k_, u_, threads);
  }

 private:
  std::int64_t input(const ColumnPlan& plan, std::int64_t reversed) const {
    return plan.input[static_cast<std::size_t>(k_ - 1 - reversed)];
  }

  const Calibration& calibration_;
  std::int64_t k_;
  std::vector<double> diagonal_;
  std::vector<bool> live_;
  double mean_ = 0;  // of the diagonal, over live inputs
  std::vector<double> u_;
};

std::optional<double> factorize_with_retries(Inverse& inverse, const ColumnPlan& plan, double damping, int threads) {
  if (inverse.factorize(plan, damping, threads)) return damping;
  for (const double retry : kGptqDampingRetries)
    if (retry > damping && inverse.factorize(plan, retry, threads)) return retry;
  return std::nullopt;
}

QuantizerResult round_instead(const FloatMatrix& weights, const Calibration& calibration, const QuantizerGrid& grid,
                              const std::string& because, int threads) {
  QuantizerResult result = quantize_rounding(weights, grid, threads);
  result.weights.warnings.push_back("rounded to nearest instead of GPTQ: " + because);
  result.objective = output_objective(weight_errors(result.weights, weights, threads), calibration, threads);
  return result;
}

// tr(D H D^T) with H as it is, not damped: from that with the damped one, the sum of all e_i^2.
double undamped(double squares, const Inverse& inverse, double damping, const QuantizedWeights& made,
                const FloatMatrix& weights, int threads) {
  if (damping == 0) return squares;
  const std::vector<double> errors = weight_errors(made, weights, threads);
  const auto k = static_cast<std::size_t>(made.k);
  double sum = 0;
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (inverse.live()[i % k]) sum += errors[i] * errors[i];
  return std::max(0.0, squares - damping * inverse.mean() * sum);
}

}  // namespace

QuantizerResult quantize_gptq(const FloatMatrix& weights, const Calibration& calibration, const GptqSettings& settings,
                              int threads) {
  const QuantizerClock clock;
  check_settings(settings);
  check_weights(weights);
  check_calibration(weights, calibration);
  QuantizerResult result{
      .weights = make_quantized_weights(weights.rows, weights.columns, settings.grid.format, settings.grid.group_size)};
  QuantizedWeights& made = result.weights;
  Inverse inverse(calibration);
  const ColumnPlan plan = plan_columns(settings.order, settings.static_groups, made.group_width(), inverse.diagonal());
  if (inverse.mean() > 0) result.damping = factorize_with_retries(inverse, plan, settings.damping, threads);
  if (!result.damping) {
    result = round_instead(weights, calibration, settings.grid,
                           inverse.mean() > 0 ? "H is not positive definite, even with a damping of 1"
                                              : "every input is 0 in every token of the calibration",
                           threads);
    result.seconds = clock.seconds();
    return result;
  }
  if (*result.damping > settings.damping)
    made.warnings.push_back("H is not positive definite with a damping of " + text(settings.damping) + "; " +
                            text(*result.damping) + " was taken");
  if (plan.needs_group_index) {
    made.group_index.resize(plan.input.size());
    for (std::size_t position = 0; position < plan.input.size(); ++position)
      made.group_index[static_cast<std::size_t>(plan.input[position])] =
          static_cast<std::int32_t>(plan.group[position]);
  }
  std::vector<double> squares(static_cast<std::size_t>((made.n + kGptqSlab - 1) / kGptqSlab));
  parallel_for(std::ssize(squares), threads, [&](std::int64_t slab) {
    const std::int64_t first = slab * kGptqSlab;
    squares[static_cast<std::size_t>(slab)] = gptq_slab(weights, settings, plan, inverse.live(), inverse.u(), first,
                                                        std::min(kGptqSlab, made.n - first), made);
  });
  result.objective =
      undamped(std::accumulate(squares.begin(), squares.end(), 0.0), inverse, *result.damping, made, weights, threads);
  result.seconds = clock.seconds();
  return result;
}

}  // namespace inferometer
