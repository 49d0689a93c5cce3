#include "reference/checkpoint/tensor_values.hpp"

#include <cmath>
#include <limits>

#include "harness/operator/dtype.hpp"

namespace inferometer {
namespace {

template <class Stored, class Convert>
std::vector<float> converted(std::span<const std::byte> bytes, const Convert& convert) {
  std::vector<float> values(bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(Stored), sizeof(Stored));
    values[i] = convert(stored);
  }
  return values;
}

}  // namespace

bool is_plain_float(TensorType type) {
  return type == TensorType::f16 || type == TensorType::bf16 || type == TensorType::f32;
}

bool has_float_values(TensorType type) {
  return is_plain_float(type) || type == TensorType::f8_e4m3 || type == TensorType::f8_e5m2;
}

std::vector<float> float_values(const TensorView& tensor, std::uint64_t begin, std::uint64_t count) {
  if (!has_float_values(tensor.type))
    throw std::invalid_argument("float_values: " + std::string(type_name(tensor.type)) + " holds no floats");
  const std::size_t width = static_cast<std::size_t>(type_bits(tensor.type)) / 8;
  const std::uint64_t elements = tensor.data.size() / width;
  if (begin > elements || count > elements - begin)
    throw std::invalid_argument("float_values: elements " + std::to_string(begin) + " to " +
                                std::to_string(begin + count) + " of " + std::to_string(elements));
  const std::span<const std::byte> bytes = tensor.data.subspan(begin * width, count * width);
  switch (tensor.type) {
    case TensorType::f16: return converted<std::uint16_t>(bytes, f16_value);
    case TensorType::bf16: return converted<std::uint16_t>(bytes, bf16_value);
    case TensorType::f8_e4m3: return converted<std::uint8_t>(bytes, f8_e4m3_value);
    case TensorType::f8_e5m2: return converted<std::uint8_t>(bytes, f8_e5m2_value);
    default: return converted<float>(bytes, [](float value) { return value; });
  }
}

float f8_e4m3_value(std::uint8_t bits) {
  const float sign = (bits & 0x80U) != 0 ? -1.0F : 1.0F;
  const int exponent = (bits >> 3) & 0xf;
  const int mantissa = bits & 7;
  if (exponent == 0xf && mantissa == 7) return std::numeric_limits<float>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(mantissa), -9);
  return sign * std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
}

float f8_e5m2_value(std::uint8_t bits) { return f16_value(static_cast<std::uint16_t>(bits << 8)); }

}  // namespace inferometer
