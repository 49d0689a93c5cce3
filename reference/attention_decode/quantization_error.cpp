#include "reference/attention_decode/quantization_error.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "harness/operator/generate.hpp"
#include "harness/operator/parallel.hpp"
#include "reference/common/eigen.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;
using Rows = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr std::int64_t kQueries = 16;
constexpr std::int64_t kMostKeys = std::int64_t{1} << 18;  // of a set
constexpr std::int64_t kSetKeys = std::int64_t{1} << 19;   // of all sets, but for the least number of them
constexpr std::int64_t kLeastSets = 4;
constexpr std::int64_t kMostSets = 16;
constexpr std::int64_t kPartKeys = 512;  // held at once by a thread
constexpr std::int64_t kChannelsPerOutlier = 32;
constexpr double kOutlierStddev = 10;
enum : std::uint64_t { kQueryStream = 1'000, kKeyStream, kValueStream, kChannelStream, kSetStream };  // no tensor's

// Standard deviation of each channel of the keys: 10 in every 32nd, where chance has it, and 1 in the others.
std::vector<float> channel_scales(const Problem& p, std::uint64_t seed) {
  std::vector<std::size_t> channels(static_cast<std::size_t>(p.head_dim));
  std::iota(channels.begin(), channels.end(), std::size_t{0});
  const std::int64_t outliers = std::max<std::int64_t>(1, p.head_dim / kChannelsPerOutlier);
  std::vector<float> scales(channels.size(), normal_scale(1));
  for (std::size_t i = 0; i < static_cast<std::size_t>(outliers); ++i) {
    const std::uint64_t left = channels.size() - i;
    std::swap(channels[i], channels[i + mix_bits(stream_key(seed, kChannelStream) + i) % left]);
    scales[channels[i]] = normal_scale(kOutlierStddev);
  }
  return scales;
}

// Rows [begin, begin + count) of a stream, element (token, d) of standard deviation scales[d].
class Stream {
 public:
  Stream(std::uint64_t seed, std::uint64_t stream, std::vector<float> scales)
      : key_(stream_key(seed, stream)), scales_(std::move(scales)) {}

  void read(std::int64_t token, std::span<float> row) const {
    for (std::size_t d = 0; d < row.size(); ++d)
      row[d] = normal_at(key_, static_cast<std::uint64_t>(token) * row.size() + d, scales_[d]);
  }

 private:
  std::uint64_t key_;
  std::vector<float> scales_;
};

// Tokens as they are, and as a cache holds them.
struct Tokens {
  Rows exact;
  Rows quantized;
};

Tokens make_tokens(const Problem& p, const Stream& stream, std::int64_t begin, std::int64_t count) {
  const KvCode code = kv_code(p.kv_bits, p.kv_format);
  std::vector<float> row(static_cast<std::size_t>(p.head_dim));
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(kv_row_bytes(code, p.head_dim)));
  std::vector<std::uint16_t> scales(static_cast<std::size_t>(p.groups()));
  Tokens tokens{.exact = Rows(count, p.head_dim), .quantized = Rows(count, p.head_dim)};
  for (std::int64_t j = 0; j < count; ++j) {
    const Eigen::Map<const Eigen::RowVectorXf> view(row.data(), p.head_dim);
    stream.read(begin + j, row);
    tokens.exact.row(j) = view.cast<double>();
    quantize_kv_row(code, row, codes, scales);
    dequantize_kv_row(code, codes, scales, row);
    tokens.quantized.row(j) = view.cast<double>();
  }
  return tokens;
}

// sum_j p_j v_j and sum_j p_j of some keys, for each query.
struct Sums {
  Rows pv;
  Eigen::VectorXd p;

  void add(const Sums& other) {
    pv += other.pv;
    p += other.p;
  }
  Rows outputs() const { return pv.array().colwise() / p.array(); }
};

// Without and with quantisation.
struct Part {
  Sums exact;
  Sums keys;  // of the keys alone
  Sums both;
};

class Attention {
 public:
  Attention(const Problem& p, std::uint64_t seed)
      : p_(p),
        keys_(seed, kKeyStream, channel_scales(p, seed)),
        values_(seed, kValueStream, std::vector<float>(static_cast<std::size_t>(p.head_dim), normal_scale(1))),
        queries_(kQueries, p.head_dim) {
    // A score sums head_dim products over sqrt(head_dim): its variance is that of q times the mean of the channels'.
    const auto head_dim = static_cast<double>(p.head_dim);
    const double outliers = std::max(1.0, std::floor(head_dim / kChannelsPerOutlier));
    const double variance = 1 + outliers / head_dim * (kOutlierStddev * kOutlierStddev - 1);
    const float scale = normal_scale(1 / std::sqrt(variance));
    const Stream stream(seed, kQueryStream, std::vector<float>(static_cast<std::size_t>(p.head_dim), scale));
    std::vector<float> row(static_cast<std::size_t>(p.head_dim));
    for (std::int64_t i = 0; i < kQueries; ++i) {
      stream.read(i, row);
      queries_.row(i) = Eigen::Map<const Eigen::RowVectorXf>(row.data(), p.head_dim).cast<double>();
    }
  }

  Part attend(std::int64_t begin, std::int64_t count) const {
    const Tokens k = make_tokens(p_, keys_, begin, count);
    const Tokens v = make_tokens(p_, values_, begin, count);
    const Rows exact = weights(k.exact);
    const Rows quantized = weights(k.quantized);
    return {.exact = {.pv = exact * v.exact, .p = exact.rowwise().sum()},
            .keys = {.pv = quantized * v.exact, .p = quantized.rowwise().sum()},
            .both = {.pv = quantized * v.quantized, .p = quantized.rowwise().sum()}};
  }

 private:
  // exp(S). No maximum is taken off: elements lie within 3.5 standard deviations, so that no score passes 150.
  Rows weights(const Rows& k) const {
    Rows s = queries_ * k.transpose() / std::sqrt(static_cast<double>(p_.head_dim));
    if (p_.soft_cap > 0) s = p_.soft_cap * (s / p_.soft_cap).array().tanh().matrix();
    return s.array().exp();
  }

  const Problem& p_;
  Stream keys_;
  Stream values_;
  Rows queries_;
};

// Squares of relative errors.
struct Squares {
  double both = 0;
  double keys = 0;
};

double relative_square(const Sums& sums, const Rows& exact) {
  return (sums.outputs() - exact).squaredNorm() / exact.squaredNorm();
}

// Of one set of keys, values and queries, from its parts.
Squares squares_of(std::span<const Part> parts) {
  Part all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {  // in their order: the same sums for any number of threads
    all.exact.add(parts[i].exact);
    all.keys.add(parts[i].keys);
    all.both.add(parts[i].both);
  }
  const Rows exact = all.exact.outputs();
  return {.both = relative_square(all.both, exact), .keys = relative_square(all.keys, exact)};
}

}  // namespace

QuantizationError quantization_error(const Problem& p, std::uint64_t seed, int threads) {
  const std::int64_t visible = p.window_left < 0 ? p.context : std::min(p.context, p.window_left + 1);
  const std::int64_t keys = std::min(visible, kMostKeys);
  const std::int64_t sets = std::clamp(kSetKeys / keys, kLeastSets, kMostSets);
  const std::int64_t parts_of_set = (keys + kPartKeys - 1) / kPartKeys;
  std::vector<Attention> attentions;
  attentions.reserve(static_cast<std::size_t>(sets));
  for (std::int64_t set = 0; set < sets; ++set)
    attentions.emplace_back(p, stream_key(seed, kSetStream + static_cast<std::uint64_t>(set)));
  std::vector<Part> parts(static_cast<std::size_t>(sets * parts_of_set));
  parallel_for(std::ssize(parts), threads, [&](std::int64_t i) {
    const std::int64_t begin = i % parts_of_set * kPartKeys;
    const Attention& attention = attentions[static_cast<std::size_t>(i / parts_of_set)];
    parts[static_cast<std::size_t>(i)] = attention.attend(begin, std::min(kPartKeys, keys - begin));
  });
  Squares sum;
  for (std::int64_t set = 0; set < sets; ++set) {
    const auto first = static_cast<std::size_t>(set * parts_of_set);
    const Squares one = squares_of(std::span(parts).subspan(first, static_cast<std::size_t>(parts_of_set)));
    sum.both += one.both;
    sum.keys += one.keys;
  }
  const auto count = static_cast<double>(sets);
  return {.both = std::sqrt(sum.both / count), .keys = std::sqrt(sum.keys / count)};
}

std::vector<Metric> decode_metrics(const Problem& p, const Inputs& inputs, std::span<const void* const> /*tensors*/,
                                   int threads) {
  if (p.kv_bits == 16) return {};
  const QuantizationError error = quantization_error(p, inputs.seed(), threads);
  return {{"quantization_rel_error", error.both}, {"quantization_rel_error_keys", error.keys}};
}

}  // namespace inferometer
