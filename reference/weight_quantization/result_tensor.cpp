#include "reference/weight_quantization/result_tensor.hpp"

#include <bit>
#include <limits>
#include <stdexcept>
#include <string>

#include "reference/weight_quantization/problem.hpp"

namespace inferometer {
namespace {

using Problem = WeightQuantizationProblem;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kLimbMask = (std::uint64_t{1} << kResultLimbBits) - 1;

GridFormat format_of(const Problem& p) {
  return {.bits = p.bits, .symmetric = p.symmetric, .scale_dtype = p.scale_dtype};
}

// One element after the other.
class Writer {
 public:
  explicit Writer(std::span<std::int32_t> elements) : elements_(elements) {}

  void put(std::int64_t value) { elements_[next_++] = static_cast<std::int32_t>(value); }
  void put_double(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int limb = 0; limb < kResultLimbs; ++limb)
      put(static_cast<std::int64_t>(bits >> (limb * kResultLimbBits) & kLimbMask));
  }

 private:
  std::span<std::int32_t> elements_;
  std::size_t next_ = 0;
};

class Reader {
 public:
  explicit Reader(std::span<const std::int32_t> elements) : elements_(elements) {}

  std::int32_t take() { return elements_[next_++]; }
  // Of a type too small for an i32. What does not fit is no result of this problem.
  template <class Integer>
  Integer take_as(const char* what, std::int64_t add = 0) {
    const std::int64_t value = take() + add;
    if (value < std::numeric_limits<Integer>::min() || value > std::numeric_limits<Integer>::max())
      throw std::invalid_argument(std::string(what) + " " + std::to_string(value) + " is out of range");
    return static_cast<Integer>(value);
  }
  double take_double() {
    std::uint64_t bits = 0;
    for (int limb = 0; limb < kResultLimbs; ++limb)
      bits |= (static_cast<std::uint64_t>(take()) & kLimbMask) << (limb * kResultLimbBits);
    return std::bit_cast<double>(bits);
  }
  std::optional<double> take_optional() {
    const double value = take_double();
    return value == value ? std::optional(value) : std::nullopt;
  }

 private:
  std::span<const std::int32_t> elements_;
  std::size_t next_ = 0;
};

}  // namespace

std::int64_t result_elements(const Problem& p) { return ResultLayout(p).elements; }

void write_result(const Problem& p, const MethodResult& result, std::span<std::int32_t> elements) {
  const QuantizerResult& made = result.quantized;
  const QuantizedWeights& q = made.weights;
  if (std::ssize(elements) != result_elements(p) || q.n != p.n || q.k != p.k || q.groups() != p.groups())
    throw std::invalid_argument("write_result: weights of another shape than the problem's");
  Writer writer(elements);
  writer.put(q.n);
  writer.put(q.k);
  writer.put(q.groups());
  writer.put(q.group_index.empty() ? 0 : 1);
  writer.put(q.input_scales.empty() ? 0 : 1);
  writer.put(std::ssize(q.warnings));
  writer.put_double(made.objective.value_or(kNone));
  writer.put_double(made.damping.value_or(kNone));
  writer.put_double(made.seconds);
  writer.put_double(result.calibration_seconds);
  for (const std::int16_t code : q.codes) writer.put(code - q.format.least_code());
  for (const std::uint16_t scale : q.scales) writer.put(scale);
  for (std::size_t i = 0; i < q.scales.size(); ++i) writer.put(q.zeros.empty() ? 0 : q.zeros[i]);
  for (std::int64_t i = 0; i < q.k; ++i) writer.put(q.group_of(i));
  for (std::size_t i = 0; i < static_cast<std::size_t>(q.k); ++i)
    writer.put(std::bit_cast<std::int32_t>(q.input_scales.empty() ? 1.0F : q.input_scales[i]));
}

MethodResult read_result(const Problem& p, std::span<const std::int32_t> elements) {
  if (std::ssize(elements) != result_elements(p))
    throw std::invalid_argument("read_result: " + std::to_string(elements.size()) +
                                " elements are not those of the problem");
  MethodResult result;
  QuantizedWeights& q = result.quantized.weights;
  q = make_quantized_weights(p.n, p.k, format_of(p), p.group_size);
  Reader reader(elements);
  for (const std::int64_t known : {p.n, p.k, p.groups()})
    if (reader.take() != known) throw std::invalid_argument("read_result: a result of another shape");
  const bool has_group_index = reader.take() != 0;
  const bool has_input_scales = reader.take() != 0;
  result.warnings = reader.take();
  result.quantized.objective = reader.take_optional();
  result.quantized.damping = reader.take_optional();
  result.quantized.seconds = reader.take_double();
  result.calibration_seconds = reader.take_double();
  for (std::int16_t& code : q.codes) code = reader.take_as<std::int16_t>("code", q.format.least_code());
  for (std::uint16_t& scale : q.scales) scale = reader.take_as<std::uint16_t>("scale");
  for (std::size_t i = 0; i < q.scales.size(); ++i) {
    const auto zero = reader.take_as<std::uint8_t>("zero");
    if (!p.symmetric) {
      q.zeros[i] = zero;
    } else if (zero != 0) {
      throw std::invalid_argument("zero " + std::to_string(zero) + " in a symmetric format");
    }
  }
  for (std::int64_t i = 0; i < p.k; ++i) {
    const std::int32_t group = reader.take();
    if (has_group_index) q.group_index.push_back(group);
  }
  for (std::int64_t i = 0; i < p.k; ++i) {
    const auto scale = std::bit_cast<float>(reader.take());
    if (has_input_scales) q.input_scales.push_back(scale);
  }
  return result;
}

}  // namespace inferometer
