#include "kernels/attention_decode/softmax_state.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kLog2E = 1.44269504F;

// The state of these scores, by the definition.
SoftmaxState state_of(const std::vector<float>& scores, float scale) {
  SoftmaxState state;
  for (const float score : scores) state.max = std::fmax(state.max, score);
  for (const float score : scores) state.sum += std::exp(scale * (score - state.max));
  return state;
}

// As the kernel merges parts.
SoftmaxState merge(const std::vector<SoftmaxState>& parts, float scale_log2) {
  SoftmaxState merged;
  for (const SoftmaxState& part : parts) merged.max = std::fmax(merged.max, part.max);
  for (const SoftmaxState& part : parts) merged.sum += part.sum * rescale_factor(part.max, merged.max, scale_log2);
  return merged;
}

TEST_CASE("softmax state: empty parts merge into an empty one, not NaN", "[attention_decode]") {
  const SoftmaxState merged = merge({{}, {}, {}}, kLog2E);
  CHECK(merged.max == -kInfinity);
  CHECK(merged.sum == 0.0F);
  CHECK(normaliser(merged) == 0.0F);
  CHECK(log_sum_exp(merged, 1.0F) == -kInfinity);
}

TEST_CASE("softmax state: an empty part changes nothing, on either side", "[attention_decode]") {
  const SoftmaxState some{.max = 3.0F, .sum = 2.5F};
  for (const SoftmaxState merged : {merge({some, {}}, kLog2E), merge({{}, some}, kLog2E)}) {
    CHECK(merged.max == some.max);
    CHECK(merged.sum == some.sum);
  }
}

TEST_CASE("softmax state: parts merge into the state of the whole", "[attention_decode]") {
  const float scale = 0.125F;
  const SoftmaxState merged =
      merge({state_of({1.0F, -7.0F, 30.0F}, scale), state_of({31.0F, 2.0F}, scale)}, scale * kLog2E);
  const SoftmaxState whole = state_of({1.0F, -7.0F, 30.0F, 31.0F, 2.0F}, scale);
  CHECK(merged.max == whole.max);
  // Five terms and two rescalings, each a few roundings of f32.
  CHECK(merged.sum == Approx(whole.sum).epsilon(1e-6));
  CHECK(log_sum_exp(merged, scale) == Approx(log_sum_exp(whole, scale)).epsilon(1e-6));
}

TEST_CASE("softmax state: a maximum that is only near the greatest score gives the same sums", "[attention_decode]") {
  const float scale = 0.125F;
  const SoftmaxState exact = state_of({1.0F, 30.0F, 31.0F}, scale);
  SoftmaxState stale{.max = 1.0F};
  for (const float score : {1.0F, 30.0F, 31.0F}) stale.sum += std::exp(scale * (score - stale.max));
  CHECK(log_sum_exp(stale, scale) == Approx(log_sum_exp(exact, scale)).epsilon(1e-6));
  CHECK(merge({stale, exact}, scale * kLog2E).sum == Approx(2 * exact.sum).epsilon(1e-6));
}

TEST_CASE("softmax state: equal scores of 1e12 keep their weights", "[attention_decode]") {
  // scale * score is rounded to a multiple of 2^14 here; a log-sum-exp could not tell the two parts apart.
  const SoftmaxState merged = merge({{1.134e12F, 100.0F}, {1.134e12F, 28.0F}}, 0.125F * kLog2E);
  CHECK(merged.sum == 128.0F);
}

TEST_CASE("softmax state: a part far below the other one vanishes without overflow", "[attention_decode]") {
  const SoftmaxState merged = merge({{-1e5F, 7.0F}, {1e5F, 1.0F}}, kLog2E);
  CHECK(merged.max == 1e5F);
  CHECK(merged.sum == 1.0F);
}

}  // namespace
}  // namespace inferometer
