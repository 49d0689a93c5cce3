// What the tests of matmuls with quantised weights share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/tensor.hpp"
#include "reference/matmul/problem.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

inline Fields quantized_fields(const MatmulProblem& p) {
  return {{"m", p.m},
          {"n", p.n},
          {"k", p.k},
          {"bits", p.bits},
          {"activation_bits", p.activation_bits},
          {"group_size", p.group_size},
          {"symmetric", p.symmetric},
          {"dtype", std::string(dtype_name(p.dtype))}};
}

// Every format of quantised weights and activations there is; sizes are 1.
inline std::vector<MatmulProblem> weight_formats() {
  std::vector<MatmulProblem> formats;
  for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
    for (const std::int64_t bits : {8, 4})
      for (const std::int64_t group_size : {0, 32, 64, 128})
        for (const bool symmetric : {true, false})
          formats.push_back({.bits = bits, .group_size = group_size, .symmetric = symmetric, .dtype = dtype});
    formats.push_back({.bits = 8, .activation_bits = 8, .dtype = dtype});
  }
  return formats;
}

using ElementOf = std::function<float(std::int64_t)>;

// Elements of the named tensors as functions of their index; of codes and zero points: whole bytes.
inline EditTensors with_elements(const std::map<std::string, ElementOf>& sources) {
  return [sources](std::vector<TensorSpec>& specs) {
    for (TensorSpec& spec : specs)
      if (const auto found = sources.find(spec.name); found != sources.end()) spec.source = found->second;
  };
}

// Of unit_rows_against_all_codes: q[j][i], so that every code stands in every position of a byte and of a 32-bit word,
// and z[j][g].
inline std::int64_t code_at(const MatmulProblem& p, std::int64_t j, std::int64_t i) {
  const std::int64_t levels = std::int64_t{1} << p.bits;
  return (i + j) % levels - (p.symmetric ? levels / 2 : 0);
}
inline std::int64_t zero_at(const MatmulProblem& p, std::int64_t j, std::int64_t group) {
  return p.symmetric ? 0 : (3 * j + group) % (std::int64_t{1} << p.bits);
}

// x: the unit rows, so that row i of Y is column i of W; w: code_at; zeros: zero_at; scales: 1. Written byte by byte
// from the words of layout.hpp, with no help of the reference.
inline EditTensors unit_rows_against_all_codes(const MatmulProblem& p) {
  const std::int64_t levels = std::int64_t{1} << p.bits;
  const auto stored = [p, levels](std::int64_t q) {
    const std::int64_t bias = p.symmetric && p.bits == 4 ? levels / 2 : 0;
    return (q + bias + levels) % levels;
  };
  const auto codes = [p, stored](std::int64_t byte) {
    if (p.bits == 8) return static_cast<float>(stored(code_at(p, byte / p.k, byte % p.k)));
    const std::int64_t j = byte / (p.k / 2);
    const std::int64_t i = byte % (p.k / 2) * 2;
    return static_cast<float>(stored(code_at(p, j, i)) + 16 * stored(code_at(p, j, i + 1)));
  };
  const auto zeros = [p](std::int64_t byte) {
    if (p.bits == 8) return static_cast<float>(zero_at(p, byte / p.groups(), byte % p.groups()));
    const std::int64_t row_bytes = (p.groups() + 1) / 2;
    const std::int64_t j = byte / row_bytes;
    const std::int64_t g = byte % row_bytes * 2;
    const std::int64_t second = g + 1 < p.groups() ? zero_at(p, j, g + 1) : 0;
    return static_cast<float>(zero_at(p, j, g) + 16 * second);
  };
  return with_elements({{"x", [p](std::int64_t i) { return i / p.k == i % p.k ? 1.0F : 0.0F; }},
                        {"w", codes},
                        {"scales", [](std::int64_t) { return 1.0F; }},
                        {"zeros", zeros}});
}

}  // namespace inferometer::test
