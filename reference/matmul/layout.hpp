// How quantised weights of a matmul lie in memory, byte by byte. It is the canonical form: easy to read, near to what
// checkpoints hold. A kernel that wants another order makes it once, when it prepares. Kernels and references each
// compute these positions by themselves, so that neither can hide the other's mistake.
//
// W is [n, k], a row an output feature. The weights of a row form groups = ceil(k / group_size) groups of group_size
// neighbours along k (group_size 0: one group); where group_size does not divide k the last group is short, and nothing
// stands in memory for what it lacks. A weight is worth
//   W[j][i] = (q[j][i] - z[j][g]) * s[j][g],  g = i / group_size (0 with group_size 0)
// exactly: no rounding. q and z are integers, z = 0 in a symmetric format:
//   bits 8, symmetric     q in [-128, 127], two's complement
//   bits 8, asymmetric    q in [0, 255], z in [0, 255], unsigned
//   bits 4, symmetric     q in [-8, 7], stored as q + 8: the nibble is the code of a zero point of 8
//   bits 4, asymmetric    q in [0, 15], z in [0, 15], unsigned
//
//   w       bits 8  [n, k]      u8  byte (j, i) is q[j][i]
//           bits 4  [n, k / 2]  u8  byte (j, b) holds q[j][2b] in bits 0-3 and q[j][2b + 1] in bits 4-7; k is even
//   scales          [n, groups] of the problem's dtype: f16, or bf16 as checkpoints of bf16 models have them
//   zeros   bits 8  [n, groups] u8                       asymmetric formats only
//           bits 4  [n, (groups + 1) / 2]  u8  byte (j, b): z[j][2b] in bits 0-3, z[j][2b + 1] in bits 4-7; the last
//                   nibble is 0 and unused where groups is odd
//
// With k = 4096 and group_size 128 a 4-bit weight takes 4.125 bits, 4.15625 if asymmetric.
#pragma once

#include <cstdint>
#include <span>

#include "reference/matmul/problem.hpp"

namespace inferometer {

// Bytes of one row of codes, and of one row of zero points (0 in a symmetric format).
std::int64_t code_row_bytes(const MatmulProblem& p);
std::int64_t zero_row_bytes(const MatmulProblem& p);

// Throws ProblemError, naming the field, for weights and activations of formats that there are not.
void check_weight_format(const MatmulProblem& p);

// One row of q into its bytes and back: k integers, code_row_bytes(p) bytes.
void pack_codes(const MatmulProblem& p, std::span<const std::int32_t> q, std::span<std::uint8_t> bytes);
void unpack_codes(const MatmulProblem& p, std::span<const std::uint8_t> bytes, std::span<std::int32_t> q);

// One row of z likewise: groups() integers, zero_row_bytes(p) bytes; all 0 from none in a symmetric format.
void pack_zeros(const MatmulProblem& p, std::span<const std::int32_t> z, std::span<std::uint8_t> bytes);
void unpack_zeros(const MatmulProblem& p, std::span<const std::uint8_t> bytes, std::span<std::int32_t> z);

}  // namespace inferometer
