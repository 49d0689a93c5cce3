#include "reference/attention_decode/judged_rows.hpp"

#include <cmath>
#include <string_view>
#include <vector>

namespace inferometer {
namespace {

using Problem = AttentionDecodeProblem;

std::int64_t slots_of_page(const Problem& p) { return p.block_size == 0 ? p.context : p.block_size; }

// FP8 E4M3, by its definition: (-1)^s 2^(e - 7) (1 + m / 8), and 2^-6 m / 8 where e is 0.
double e4m3(int byte) {
  const int exponent = byte / 8 % 16;
  const double mantissa = byte % 8 / 8.0;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -6) : std::ldexp(1 + mantissa, exponent - 7);
  return byte < 128 ? magnitude : -magnitude;
}

double twos_complement(int bits, int width) {
  const int half = 1 << (width - 1);
  return bits < half ? bits : bits - 2 * half;
}

// The number that the code of element d stands for.
double code(const Problem& p, const std::vector<float>& row, std::int64_t d) {
  if (p.kv_bits == 4) {
    const int pair = static_cast<int>(row[static_cast<std::size_t>(d / 2)]);
    return twos_complement(d % 2 == 0 ? pair % 16 : pair / 16, 4);
  }
  const int byte = static_cast<int>(row[static_cast<std::size_t>(d)]);
  return p.kv_format == "fp8_e4m3" ? e4m3(byte) : twos_complement(byte, 8);
}

}  // namespace

Eigen::RowVectorXd read_judged_token(const Problem& p, const Inputs& inputs, KeyOrValue which, const JudgedSlot& slot,
                                     std::int64_t kv_head) {
  const std::string_view name = which == KeyOrValue::key ? "k" : "v";
  if (p.kv_bits == 16) {
    const std::int64_t stride = which == KeyOrValue::key ? p.k_stride() : p.v_stride();
    const std::int64_t first = (slot.page * slots_of_page(p) + slot.within) * stride + kv_head * p.head_dim;
    return read_judged_row(inputs, name, first, p.head_dim);
  }
  const std::int64_t place = (slot.page * p.kv_heads + kv_head) * slots_of_page(p) + slot.within;
  const std::int64_t code_bytes = p.head_dim * p.kv_bits / 8;
  const std::int64_t row_bytes = (code_bytes + 15) / 16 * 16;
  const std::vector<float> codes = inputs.read(name, place * row_bytes, code_bytes);
  const std::vector<float> scales = inputs.read("kv_scales", place * p.groups() * 2, p.groups() * 2);
  const std::int64_t group_size = p.head_dim / p.groups();
  Eigen::RowVectorXd row(p.head_dim);
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    const auto scale = static_cast<std::size_t>(d / group_size * 2 + (which == KeyOrValue::key ? 0 : 1));
    row[d] = code(p, codes, d) * static_cast<double>(scales[scale]);
  }
  return row;
}

RowsF64 read_judged_rows(const Problem& p, const Inputs& inputs, KeyOrValue which, std::int64_t sequence,
                         std::int64_t kv_head, std::int64_t begin, std::int64_t count) {
  RowsF64 rows(count, p.head_dim);
  for (std::int64_t j = 0; j < count; ++j)
    rows.row(j) = read_judged_token(p, inputs, which,
                                    judged_slot(inputs, p.block_size, p.max_blocks(), sequence, begin + j), kv_head);
  return rows;
}

}  // namespace inferometer
