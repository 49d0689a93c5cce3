#include <algorithm>
#include <array>

#include "harness/operator/fields.hpp"
#include "harness/operator/nearest_word.hpp"
#include "reference/kv_cache/layout.hpp"

namespace inferometer {
namespace {

constexpr std::array<std::int64_t, 3> kBits{16, 8, 4};
constexpr std::array<std::int64_t, 4> kGroups{0, 32, 64, 128};

template <std::size_t kCount>
bool contains(const std::array<std::int64_t, kCount>& allowed, std::int64_t value) {
  return std::find(allowed.begin(), allowed.end(), value) != allowed.end();
}

}  // namespace

void check_kv_quantization(std::int64_t kv_bits, const std::string& kv_format, std::int64_t kv_group_size,
                           std::int64_t head_dim) {
  if (!contains(kBits, kv_bits))
    throw ProblemError("kv_bits", "kv_bits must be 16, 8 or 4, got " + std::to_string(kv_bits));
  if (kv_format != "integer" && kv_format != "fp8_e4m3")
    throw ProblemError("kv_format", "kv_format must be integer or fp8_e4m3, got " + in_quotes(kv_format));
  if (kv_format == "fp8_e4m3" && kv_bits != 8)
    throw ProblemError("kv_format", "kv_format fp8_e4m3 needs kv_bits 8, got " + std::to_string(kv_bits));
  if (!contains(kGroups, kv_group_size))
    throw ProblemError("kv_group_size",
                       "kv_group_size must be 0 (the whole head), 32, 64 or 128, got " + std::to_string(kv_group_size));
  if (kv_group_size != 0 && head_dim % kv_group_size != 0)
    throw ProblemError("kv_group_size", "kv_group_size must divide head_dim (" + std::to_string(head_dim) + "), got " +
                                            std::to_string(kv_group_size));
}

}  // namespace inferometer
