// Quantising one row of a KV cache, the key or the value of one token and KV head, and back: the arithmetic that
// layout.hpp states, operation by operation. It is the truth for kernels, which must match it to the bit.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace inferometer {

// What a stored code means.
enum class KvCode : std::uint8_t { int8, fp8_e4m3, int4 };

// Of kv_bits 8 or 4 and kv_format, as check_kv_quantization allows them.
KvCode kv_code(std::int64_t kv_bits, std::string_view kv_format);

// The largest magnitude of a code: 127, 448 or 7.
float largest_code(KvCode code);

// Bytes of a row of `head_dim` codes, without the padding to kv_row_bytes.
std::int64_t kv_code_bytes(KvCode code, std::int64_t head_dim);

// Bytes from one row to the next: kv_code_bytes rounded up to a multiple of 16.
std::int64_t kv_row_bytes(KvCode code, std::int64_t head_dim);

// The number that an FP8 E4M3 code stands for: sign, 4 exponent bits of bias 7, 3 mantissa bits (OCP 8-bit floating
// point specification 1.0, table 2). 0x7f and 0xff are NaN.
float e4m3_value(std::uint8_t code);

// The E4M3 code nearest to a finite or infinite value, ties to the even code; at most +-448. A value that rounds to 0
// keeps its sign: -0 is 0x80.
std::uint8_t e4m3_code(float value);

// `row`: the elements, all finite. `codes`: at least kv_code_bytes(code, row.size()) bytes; those past the codes are
// left alone. `scales`: f16, one a group of row.size() / scales.size() neighbouring elements.
// Throws std::invalid_argument when the sizes do not fit each other.
void quantize_kv_row(KvCode code, std::span<const float> row, std::span<std::uint8_t> codes,
                     std::span<std::uint16_t> scales);

// row[d] = code * scale, rounded once to f32 (exact but for FP8 at the ends of f32). Sizes as above.
void dequantize_kv_row(KvCode code, std::span<const std::uint8_t> codes, std::span<const std::uint16_t> scales,
                       std::span<float> row);

}  // namespace inferometer
