#include "reference/matmul/weights.hpp"

#include <algorithm>

#include "harness/operator/generate.hpp"
#include "reference/matmul/layout.hpp"

namespace inferometer {
namespace {

constexpr double kStddev = 0.02;
enum : std::uint64_t { kWeightStream = 1'000, kTailStream, kChannelStream };  // no tensor's

std::int64_t weights_of_group(const MatmulProblem& p) { return p.group_size == 0 ? p.k : p.group_size; }

std::vector<std::uint8_t> read_bytes(const Inputs& inputs, std::string_view name, std::int64_t begin,
                                     std::int64_t count) {
  const std::vector<float> values = inputs.read(name, begin, count);
  std::vector<std::uint8_t> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(), [](float v) { return static_cast<std::uint8_t>(v); });
  return bytes;
}

}  // namespace

void fill_synthetic_row(std::uint64_t seed, std::int64_t row, std::span<float> weights) {
  const std::uint64_t key = stream_key(seed, kWeightStream);
  const std::uint64_t tail_key = stream_key(seed, kTailStream);
  const std::uint64_t channel_key = stream_key(seed, kChannelStream);
  const float scale = normal_scale(kStddev);
  const std::uint64_t first = static_cast<std::uint64_t>(row) * weights.size();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    float weight = normal_at(key, first + i, scale);
    if (mix_bits(tail_key + first + i) % kWeightsPerOutlier == 0) weight *= kOutlierFactor;
    if (mix_bits(channel_key + i) % kChannelsPerOutlier == 0) weight *= kChannelFactor;
    weights[i] = weight;
  }
}

QuantizedRow quantize_synthetic_row(const MatmulProblem& p, std::uint64_t seed, std::int64_t row) {
  std::vector<float> weights(static_cast<std::size_t>(p.k));
  fill_synthetic_row(seed, row, weights);
  QuantizedRow quantized{.codes = std::vector<std::int32_t>(weights.size()),
                         .grids = std::vector<Grid>(static_cast<std::size_t>(p.groups()))};
  const GridFormat format{.bits = p.bits, .symmetric = p.symmetric, .scale_dtype = p.dtype};
  quantize_rtn(format, weights, weights_of_group(p), quantized.codes, quantized.grids);
  return quantized;
}

std::vector<double> read_weights(const MatmulProblem& p, const Inputs& inputs, std::int64_t row) {
  if (!p.is_quantized()) {
    const std::vector<float> stored = inputs.read("w", row * p.k, p.k);
    return {stored.begin(), stored.end()};
  }
  std::vector<std::int32_t> q(static_cast<std::size_t>(p.k));
  unpack_codes(p, read_bytes(inputs, "w", row * code_row_bytes(p), code_row_bytes(p)), q);
  const std::vector<float> scales = inputs.read("scales", row * p.groups(), p.groups());
  std::vector<std::int32_t> z(scales.size(), 0);
  if (!p.symmetric) unpack_zeros(p, read_bytes(inputs, "zeros", row * zero_row_bytes(p), zero_row_bytes(p)), z);
  const auto group_size = static_cast<std::size_t>(weights_of_group(p));
  std::vector<double> weights(q.size());
  for (std::size_t i = 0; i < q.size(); ++i)
    weights[i] = static_cast<double>(q[i] - z[i / group_size]) * scales[i / group_size];
  return weights;
}

}  // namespace inferometer
