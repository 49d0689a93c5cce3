#include "reference/checkpoint/tensor_type.hpp"

#include <array>

namespace inferometer {
namespace {

struct Named {
  TensorType type;
  std::string_view name;
  int bits;
};

constexpr std::array kTypes{
    Named{TensorType::f4, "F4", 4},
    Named{TensorType::f6_e2m3, "F6_E2M3", 6},
    Named{TensorType::f6_e3m2, "F6_E3M2", 6},
    Named{TensorType::boolean, "BOOL", 8},
    Named{TensorType::u8, "U8", 8},
    Named{TensorType::i8, "I8", 8},
    Named{TensorType::f8_e5m2, "F8_E5M2", 8},
    Named{TensorType::f8_e4m3, "F8_E4M3", 8},
    Named{TensorType::f8_e8m0, "F8_E8M0", 8},
    Named{TensorType::f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    Named{TensorType::f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    Named{TensorType::i16, "I16", 16},
    Named{TensorType::u16, "U16", 16},
    Named{TensorType::f16, "F16", 16},
    Named{TensorType::bf16, "BF16", 16},
    Named{TensorType::i32, "I32", 32},
    Named{TensorType::u32, "U32", 32},
    Named{TensorType::f32, "F32", 32},
    Named{TensorType::c64, "C64", 64},
    Named{TensorType::f64, "F64", 64},
    Named{TensorType::i64, "I64", 64},
    Named{TensorType::u64, "U64", 64},
};

constexpr bool indexed_by_type() {
  for (std::size_t i = 0; i < kTypes.size(); ++i)
    if (static_cast<std::size_t>(kTypes[i].type) != i) return false;
  return true;
}
static_assert(indexed_by_type());

}  // namespace

std::string_view type_name(TensorType type) { return kTypes.at(static_cast<std::size_t>(type)).name; }

std::optional<TensorType> parse_type(std::string_view name) {
  for (const Named& named : kTypes)
    if (named.name == name) return named.type;
  return std::nullopt;
}

int type_bits(TensorType type) { return kTypes.at(static_cast<std::size_t>(type)).bits; }

std::optional<std::uint64_t> tensor_bits(TensorType type, const std::vector<std::uint64_t>& shape) {
  std::uint64_t product = 1;
  for (const std::uint64_t extent : shape)
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  if (__builtin_mul_overflow(product, static_cast<std::uint64_t>(type_bits(type)), &product)) return std::nullopt;
  return product;
}

}  // namespace inferometer
