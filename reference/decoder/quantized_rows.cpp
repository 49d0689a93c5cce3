#include "reference/decoder/quantized_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/decoder/problem.hpp"
#include "reference/kv_cache/quantize.hpp"

namespace inferometer {

void quantize_weight_row(std::int64_t bits, std::span<float> row) {
  if (bits == 16) return;
  const float largest = bits == 8 ? 127 : 7;
  for (std::size_t begin = 0; begin < row.size(); begin += kWeightGroup) {
    const auto group = row.subspan(begin, std::min<std::size_t>(kWeightGroup, row.size() - begin));
    float most = 0;
    for (const float w : group) most = std::max(most, std::abs(w));
    const float scale = f16_value(f16_bits(most / largest));
    const float inverse = scale == 0 ? 0 : 1 / scale;
    for (float& w : group) w = scale * std::clamp(std::nearbyint(w * inverse), -largest, largest);
  }
}

void quantize_kv_head(std::int64_t bits, std::span<float> head) {
  for (float& x : head) x = f16_value(f16_bits(x));
  if (bits == 16) return;
  const KvCode code = kv_code(bits, "integer");
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(kv_row_bytes(code, std::ssize(head))));
  std::array<std::uint16_t, 1> scale{};
  quantize_kv_row(code, head, codes, scale);
  dequantize_kv_row(code, codes, scale, head);
}

}  // namespace inferometer
