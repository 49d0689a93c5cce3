// activation_bits 8: a token, a row of X, as int8 codes with one f32 scale. This arithmetic, operation by operation, is
// the truth for kernels, which must make the same codes; all in f32, each operation rounded once to nearest even:
//   greatest = max |x_i|, at least 2^-100, so that its reciprocal is finite
//   scale    = greatest / 127
//   code_i   = x_i * (127 / greatest), rounded to the nearest integer, ties to even: within [-127, 127]
// Y[i][j] = scale_i * s_j * sum over k of code_i * q_j, s and q of layout.hpp: the sum is exact in int32.
// A token that holds an infinity or a NaN has no codes; every Y of its row is to be NaN.
#pragma once

#include <cstdint>
#include <span>

namespace inferometer {

// Returns the scale. `codes`: one for each element; 0 where `token` has an element that is not finite, with a scale
// that is NaN.
float quantize_token(std::span<const float> token, std::span<std::int8_t> codes);

}  // namespace inferometer
