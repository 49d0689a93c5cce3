#include "reference/weight_quantization/layer_source.hpp"

#include <algorithm>
#include <cmath>

#include "harness/operator/generate.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/matmul/weights.hpp"
#include "reference/weight_quantization/file_layer.hpp"

namespace inferometer {
namespace {

using Problem = WeightQuantizationProblem;

constexpr std::size_t kFactors = 16;
constexpr std::uint64_t kInputsPerOutlier = 64;
constexpr float kOutlierFactor = 10;
// Streams of the seed, apart from those of matmul's synthetic weights.
enum : std::uint64_t { kNoiseStream = 2'000, kFactorStream, kLoadStream, kOutlierStream };

class SyntheticLayer : public LayerSource {
 public:
  explicit SyntheticLayer(const Problem& p)
      : seed_(static_cast<std::uint64_t>(p.layer_seed)), inputs_(static_cast<std::size_t>(p.k)) {
    const float noise = static_cast<float>(std::sqrt(1 - p.correlation));
    const std::uint64_t load_key = stream_key(seed_, kLoadStream);
    const std::uint64_t outlier_key = stream_key(seed_, kOutlierStream);
    const float load_scale = normal_scale(std::sqrt(p.correlation / static_cast<double>(kFactors)));
    for (std::size_t i = 0; i < inputs_; ++i) {
      const bool outlier = mix_bits(outlier_key + i) % kInputsPerOutlier == 0;
      const float magnitude = outlier ? kOutlierFactor : 1;
      noise_.push_back(magnitude * noise);
      for (std::size_t f = 0; f < kFactors; ++f)
        loads_.push_back(magnitude * normal_at(load_key, i * kFactors + f, load_scale));
    }
  }

  void weights(std::int64_t output, std::span<float> row) const override { fill_synthetic_row(seed_, output, row); }

  void activations(std::int64_t token, std::span<float> row) const override {
    const auto t = static_cast<std::uint64_t>(token);
    const float unit = normal_scale(1);
    float factors[kFactors];
    for (std::size_t f = 0; f < kFactors; ++f)
      factors[f] = normal_at(stream_key(seed_, kFactorStream), t * kFactors + f, unit);
    const std::uint64_t noise_key = stream_key(seed_, kNoiseStream);
    for (std::size_t i = 0; i < inputs_; ++i) {
      float shared = 0;
      for (std::size_t f = 0; f < kFactors; ++f) shared += factors[f] * loads_[i * kFactors + f];
      row[i] = noise_[i] * normal_at(noise_key, t * inputs_ + i, unit) + shared;
    }
  }

 private:
  std::uint64_t seed_;
  std::size_t inputs_;
  std::vector<float> noise_;  // [k]            c_i sqrt(1 - correlation)
  std::vector<float> loads_;  // [k, kFactors]  c_i sqrt(correlation) times the share of each factor
};

class UncorrelatedLayer : public SyntheticLayer {
 public:
  using SyntheticLayer::SyntheticLayer;

  void activations(std::int64_t token, std::span<float> row) const override {
    SyntheticLayer::activations(token, row);
    const auto kept = static_cast<std::size_t>(token) % row.size();
    // Never 0: an input that no token has would be dead.
    const float value = row[kept] >= 0 ? 1 + row[kept] : row[kept] - 1;
    std::fill(row.begin(), row.end(), 0.0F);
    row[kept] = value;
  }
};

OwnedMatrix activations(const Problem& p, std::int64_t first, std::int64_t count, int threads) {
  const auto layer = open_layer(p);
  OwnedMatrix x{.values = std::vector<float>(static_cast<std::size_t>(count * p.k)), .rows = count, .columns = p.k};
  parallel_for(count, threads, [&](std::int64_t token) {
    layer->activations(first + token, {x.values.data() + token * p.k, static_cast<std::size_t>(p.k)});
  });
  return x;
}

}  // namespace

std::vector<std::string> synthetic_source_names() { return {"synthetic", "synthetic_uncorrelated"}; }

bool is_synthetic_source(const std::string& source) {
  const std::vector<std::string> names = synthetic_source_names();
  return std::find(names.begin(), names.end(), source) != names.end();
}

std::shared_ptr<const LayerSource> open_layer(const Problem& problem) {
  if (!is_synthetic_source(problem.source)) return open_file_layer(problem);
  if (problem.source == "synthetic_uncorrelated") return std::make_shared<UncorrelatedLayer>(problem);
  return std::make_shared<SyntheticLayer>(problem);
}

OwnedMatrix layer_weights(const Problem& p, int threads) {
  const auto layer = open_layer(p);
  OwnedMatrix w{.values = std::vector<float>(static_cast<std::size_t>(p.n * p.k)), .rows = p.n, .columns = p.k};
  parallel_for(p.n, threads, [&](std::int64_t output) {
    layer->weights(output, {w.values.data() + output * p.k, static_cast<std::size_t>(p.k)});
  });
  return w;
}

OwnedMatrix calibration_activations(const Problem& p, int threads) {
  return activations(p, 0, p.calibration_tokens, threads);
}

OwnedMatrix held_out_activations(const Problem& p, int threads) {
  return activations(p, p.calibration_tokens, p.held_out_tokens, threads);
}

}  // namespace inferometer
