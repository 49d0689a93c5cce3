#include "reference/weight_quantization/awq.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "reference/weight_quantization/awq_clip.hpp"
#include "reference/weight_quantization/errors.hpp"
#include "reference/weight_quantization/rounding.hpp"
#include "reference/weight_quantization/tiles.hpp"

namespace inferometer {
namespace {

constexpr double kLeastShare = 1e-4;  // of the greatest magnitude: a silent input must not make its weights vanish

// Of ratio 0: all exactly 1.
std::vector<float> input_scales(const Calibration& calibration, double ratio) {
  const std::vector<double>& magnitudes = calibration.mean_magnitude;
  const double floor = kLeastShare * *std::max_element(magnitudes.begin(), magnitudes.end());
  std::vector<double> scales;
  scales.reserve(magnitudes.size());
  for (const double magnitude : magnitudes) scales.push_back(std::pow(std::max(magnitude, floor), ratio));
  const auto [least, greatest] = std::minmax_element(scales.begin(), scales.end());
  const double middle = std::sqrt(*least) * std::sqrt(*greatest);
  std::vector<float> rounded;
  rounded.reserve(scales.size());
  for (const double scale : scales) rounded.push_back(static_cast<float>(scale / middle));
  return rounded;
}

// W diag(s); products beyond the largest float stay at it.
std::vector<float> scale_inputs(const FloatMatrix& weights, const std::vector<float>& scales, int threads) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  std::vector<float> scaled(static_cast<std::size_t>(weights.rows * weights.columns));
  parallel_for(weights.rows, threads, [&](std::int64_t output) {
    const std::span<const float> row = weights.row(output);
    float* const to = scaled.data() + output * weights.columns;
    for (std::size_t i = 0; i < row.size(); ++i) to[i] = std::clamp(row[i] * scales[i], -kLargest, kLargest);
  });
  return scaled;
}

// A candidate and its objective.
struct Candidate {
  QuantizedWeights weights;
  double objective = 0;
};

class Search {
 public:
  Search(const FloatMatrix& weights, const Calibration& calibration, const AwqSettings& settings, int threads)
      : weights_(weights), calibration_(calibration), settings_(settings), threads_(threads) {}

  Candidate run() const {
    Candidate best = rounded(0);
    double best_ratio = 0;
    for (std::int64_t i = 1; i < settings_.ratios; ++i) {
      const double ratio = static_cast<double>(i) / static_cast<double>(settings_.ratios);
      if (Candidate other = rounded(ratio); other.objective < best.objective) {
        best = std::move(other);
        best_ratio = ratio;
      }
    }
    if (settings_.clip) {
      if (Candidate other = clipped(best.weights, best_ratio); other.objective < best.objective)
        best = std::move(other);
    }
    return best;
  }

 private:
  Candidate judged(QuantizedWeights quantized, const std::vector<float>& scales, double ratio) const {
    if (ratio > 0) quantized.input_scales = scales;
    const double objective = output_objective(weight_errors(quantized, weights_, threads_), calibration_, threads_);
    return {.weights = std::move(quantized), .objective = objective};
  }

  FloatMatrix view(const std::vector<float>& scaled) const { return {scaled.data(), weights_.rows, weights_.columns}; }

  Candidate rounded(double ratio) const {
    const std::vector<float> scales = input_scales(calibration_, ratio);
    const std::vector<float> scaled = scale_inputs(weights_, scales, threads_);
    return judged(quantize_rounding(view(scaled), settings_.grid, threads_).weights, scales, ratio);
  }

  Candidate clipped(QuantizedWeights quantized, double ratio) const {
    const std::vector<float> scales = input_scales(calibration_, ratio);
    const std::vector<float> scaled = scale_inputs(weights_, scales, threads_);
    clip_groups(view(scaled), scales, calibration_, threads_, quantized);
    return judged(std::move(quantized), scales, ratio);
  }

  const FloatMatrix& weights_;
  const Calibration& calibration_;
  const AwqSettings& settings_;
  int threads_;
};

}  // namespace

QuantizerResult quantize_awq(const FloatMatrix& weights, const Calibration& calibration, const AwqSettings& settings,
                             int threads) {
  const QuantizerClock clock;
  if (settings.ratios < 1) throw QuantizationError("ratios must be at least 1, got " + std::to_string(settings.ratios));
  check_weights(weights);
  check_calibration(weights, calibration);
  QuantizerResult result;
  const std::vector<double>& magnitudes = calibration.mean_magnitude;
  if (std::any_of(magnitudes.begin(), magnitudes.end(), [](double magnitude) { return magnitude > 0; })) {
    Candidate best = Search(weights, calibration, settings, threads).run();
    result.weights = std::move(best.weights);
    result.objective = best.objective;
  } else {
    result = quantize_rounding(weights, settings.grid, threads);
    result.objective = 0;
    result.weights.warnings.emplace_back(
        "rounded to nearest instead of AWQ: every input is 0 in every token of the calibration");
  }
  result.seconds = clock.seconds();
  return result;
}

}  // namespace inferometer
