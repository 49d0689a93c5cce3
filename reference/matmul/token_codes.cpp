#include "reference/matmul/token_codes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace inferometer {
namespace {

constexpr float kLargestCode = 127;
constexpr float kLeastGreatest = 0x1p-100F;

}  // namespace

float quantize_token(std::span<const float> token, std::span<std::int8_t> codes) {
  float greatest = kLeastGreatest;
  for (const float x : token) greatest = std::max(greatest, std::fabs(x));
  if (!std::all_of(token.begin(), token.end(), [](float x) { return std::isfinite(x); })) {
    std::fill(codes.begin(), codes.end(), std::int8_t{0});
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float inverse = kLargestCode / greatest;
  std::transform(token.begin(), token.end(), codes.begin(),
                 [inverse](float x) { return static_cast<std::int8_t>(std::rint(x * inverse)); });
  return greatest / kLargestCode;
}

}  // namespace inferometer
