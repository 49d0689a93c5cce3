#include "reference/matmul/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

constexpr std::int32_t kInt4Bias = 8;
// |q| <= 128 and |code of X| <= 127: as many products fit an int32 sum.
constexpr std::int64_t kMostProducts = ((std::int64_t{1} << 31) - 1) / (std::int64_t{128} * 127);

void require(bool holds, const char* field, const std::string& allowed, std::int64_t came) {
  if (!holds) throw ProblemError(field, std::string(field) + " must be " + allowed + ", got " + std::to_string(came));
}

void check_activations(const MatmulProblem& p) {
  require(p.activation_bits == 16 || p.activation_bits == 8, "activation_bits", "16 or 8", p.activation_bits);
  if (p.activation_bits == 16) return;
  require(p.bits == 8, "activation_bits", "16 unless bits is 8", p.activation_bits);
  require(p.group_size == 0, "group_size", "0 with activation_bits 8: one scale for an integer sum", p.group_size);
  if (!p.symmetric) throw ProblemError("symmetric", "symmetric must be true with activation_bits 8, got false");
  require(p.k <= kMostProducts, "k",
          "at most " + std::to_string(kMostProducts) + " with activation_bits 8, lest a 32-bit sum overflow", p.k);
}

void put_nibble(std::span<std::uint8_t> bytes, std::size_t index, std::int32_t value) {
  std::uint8_t& byte = bytes[index / 2];
  const auto nibble = static_cast<unsigned>(value) & 0xfU;
  byte = static_cast<std::uint8_t>(index % 2 == 0 ? (byte & 0xf0U) | nibble : (byte & 0x0fU) | nibble << 4U);
}

std::int32_t nibble_at(std::span<const std::uint8_t> bytes, std::size_t index) {
  return bytes[index / 2] >> (index % 2 == 0 ? 0 : 4) & 0xf;
}

}  // namespace

std::int64_t code_row_bytes(const MatmulProblem& p) { return p.k * p.bits / 8; }

std::int64_t zero_row_bytes(const MatmulProblem& p) {
  if (p.symmetric) return 0;
  return p.bits == 4 ? (p.groups() + 1) / 2 : p.groups();
}

void check_weight_format(const MatmulProblem& p) {
  require(p.bits == 16 || p.bits == 8 || p.bits == 4, "bits", "16, 8 or 4", p.bits);
  check_activations(p);
  if (p.w_transposed && p.is_quantized())
    throw ProblemError("w_transposed",
                       "w_transposed must be false unless bits is 16, got true with bits " + std::to_string(p.bits));
  require(p.group_size == 0 || p.group_size == 32 || p.group_size == 64 || p.group_size == 128, "group_size",
          "0 (all of k), 32, 64 or 128", p.group_size);
  if (!p.is_quantized()) {
    require(p.group_size == 0, "group_size", "0 with bits 16, which have no scales", p.group_size);
    if (!p.symmetric) throw ProblemError("symmetric", "symmetric must be true with bits 16, got false");
  }
  if (p.bits == 4) require(p.k % 2 == 0, "k", "even with bits 4: two codes share a byte", p.k);
}

void pack_codes(const MatmulProblem& p, std::span<const std::int32_t> q, std::span<std::uint8_t> bytes) {
  const std::int32_t bias = p.symmetric ? kInt4Bias : 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (p.bits == 4) {
      put_nibble(bytes, i, q[i] + bias);
    } else {
      bytes[i] = static_cast<std::uint8_t>(q[i]);
    }
  }
}

void unpack_codes(const MatmulProblem& p, std::span<const std::uint8_t> bytes, std::span<std::int32_t> q) {
  const std::int32_t bias = p.symmetric ? kInt4Bias : 0;
  for (std::size_t i = 0; i < q.size(); ++i) {
    if (p.bits == 4) {
      q[i] = nibble_at(bytes, i) - bias;
    } else {
      q[i] = p.symmetric ? static_cast<std::int8_t>(bytes[i]) : bytes[i];
    }
  }
}

void pack_zeros(const MatmulProblem& p, std::span<const std::int32_t> z, std::span<std::uint8_t> bytes) {
  if (p.symmetric) return;
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
  for (std::size_t g = 0; g < z.size(); ++g) {
    if (p.bits == 4) {
      put_nibble(bytes, g, z[g]);
    } else {
      bytes[g] = static_cast<std::uint8_t>(z[g]);
    }
  }
}

void unpack_zeros(const MatmulProblem& p, std::span<const std::uint8_t> bytes, std::span<std::int32_t> z) {
  for (std::size_t g = 0; g < z.size(); ++g) z[g] = p.symmetric ? 0 : p.bits == 4 ? nibble_at(bytes, g) : bytes[g];
}

}  // namespace inferometer
