// Element types of safetensors files, by the names that stand in their headers.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace inferometer {

// After the `Dtype` of github.com/safetensors/safetensors, safetensors/src/tensor.rs. In ascending order of width.
enum class TensorType : std::uint8_t {
  f4,
  f6_e2m3,
  f6_e3m2,
  boolean,
  u8,
  i8,
  f8_e5m2,
  f8_e4m3,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  i16,
  u16,
  f16,
  bf16,
  i32,
  u32,
  f32,
  c64,
  f64,
  i64,
  u64,
};

std::string_view type_name(TensorType type);  // "BF16"
std::optional<TensorType> parse_type(std::string_view name);
int type_bits(TensorType type);

// Bits of a whole tensor; none when 64 bits cannot count them, or a prefix of the dimensions overflows.
std::optional<std::uint64_t> tensor_bits(TensorType type, const std::vector<std::uint64_t>& shape);

}  // namespace inferometer
