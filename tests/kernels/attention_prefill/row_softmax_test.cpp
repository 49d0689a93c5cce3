// The softmax of one row whose keys arrive a block at a time (kernels/attention_prefill/row_softmax.hpp) against f64.
#include "kernels/attention_prefill/row_softmax.hpp"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstddef>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.hpp"

namespace inferometer {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr double kNone = -std::numeric_limits<double>::infinity();
constexpr int kHeadDim = 128;

struct Row {
  std::vector<double> probabilities;
  double log_sum_exp = kNone;
  int raises = 0;
};

Row expected(const std::vector<float>& scores) {
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  Row row;
  row.probabilities.resize(scores.size());
  const double top = *std::max_element(scores.begin(), scores.end());
  if (top == kNone) return row;
  double sum = 0;
  for (const float score : scores) sum += std::exp(scale * (score - top));
  for (std::size_t i = 0; i < scores.size(); ++i) row.probabilities[i] = std::exp(scale * (scores[i] - top)) / sum;
  row.log_sum_exp = scale * top + std::log(sum);
  return row;
}

// As a thread of flash_sm90_math.cuh does it, with one row and one chain.
Row computed(const std::vector<float>& scores, std::size_t block) {
  const SoftmaxScale scale(kHeadDim);
  RowSoftmax softmax;
  float sum = 0;
  std::vector<float> powers;
  Row row;
  for (std::size_t begin = 0; begin < scores.size(); begin += block) {
    const std::size_t end = std::min(begin + block, scores.size());
    float seen = -kInf;
    for (std::size_t i = begin; i < end; ++i) seen = std::fmax(seen, scores[i]);
    if (softmax.passed_by(seen, scale)) {
      const float factor = softmax.raise(seen, scale);
      for (float& power : powers) power *= factor;
      sum *= factor;
      ++row.raises;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const float power = softmax.folds(scale) ? std::exp2(std::fma(scores[i], scale.log2, -softmax.offset(scale)))
                                               : std::exp2((std::fmin(scores[i], FLT_MAX) - softmax.top) * scale.log2);
      powers.push_back(power);
      sum += power;
    }
  }
  for (const float power : powers) row.probabilities.push_back(sum == 0.0F ? 0.0 : double{power} / double{sum});
  row.log_sum_exp = softmax.log_sum_exp(sum, scale);
  return row;
}

// Of probabilities: `tolerance`, relative; those below 2^-100 may have become 0. Of the log-sum-exp: the same, and the
// rounding of its own value (c m, its product with ln 2 and the sum: less than 2^-21).
void check(const std::vector<float>& scores, std::size_t block, double tolerance) {
  const Row want = expected(scores);
  const Row got = computed(scores, block);
  double worst = 0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    worst = std::max(
        worst, std::abs(want.probabilities[i] - got.probabilities[i]) / std::max(want.probabilities[i], 0x1p-100));
  CHECK(worst <= tolerance);
  if (want.log_sum_exp == kNone) {
    CHECK(got.log_sum_exp == kNone);
  } else {
    CHECK(std::abs(got.log_sum_exp - want.log_sum_exp) <= tolerance + std::abs(want.log_sum_exp) * 0x1p-21);
  }
}

std::vector<float> random_scores(std::size_t count, float spread, float shift, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(shift, spread);
  std::vector<float> scores(count);
  for (float& score : scores) score = normal(random);
  return scores;
}

// Scores up to 100 / c: c's own rounding, 2^-24, moves an exponent of 2 by up to 100 x 2^-24; f32 sums of 300 powers
// add less than 300 x 2^-24, and raises one rounding each.
constexpr double kUsual = 500 * 0x1p-24;

TEST_CASE("row softmax: probabilities and log-sum-exp are those of f64, whatever the blocks",
          "[attention][prefill][softmax]") {
  for (const std::size_t block : {1, 7, 16, 300})
    for (const float spread : {0.0F, 1.0F, 10.0F, 100.0F})
      for (const float shift : {0.0F, -300.0F, 300.0F}) {
        CAPTURE(block, spread, shift);
        check(random_scores(300, spread, shift, 1), block, kUsual);
      }
}

TEST_CASE("row softmax: scores that keep growing raise m only past the margin, and powers stay below 2^8",
          "[attention][prefill][softmax]") {
  const SoftmaxScale scale(kHeadDim);
  std::vector<float> scores(200);
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = static_cast<float>(i) * scale.margin / 4;
  check(scores, 1, kUsual);
  const Row row = computed(scores, 1);
  CHECK(row.raises == 40);  // every fifth: four steps are the margin itself
  RowSoftmax softmax;
  softmax.raise(3.0F, scale);
  CHECK_FALSE(softmax.passed_by(3.0F + 0.99F * scale.margin, scale));
  CHECK(softmax.passed_by(3.0F + 1.01F * scale.margin, scale));
  CHECK(std::exp2(0.99F * scale.margin * scale.log2) < 256.0F);
}

TEST_CASE("row softmax: keys that are not seen weigh nothing, a row without keys has log-sum-exp -infinity",
          "[attention][prefill][softmax]") {
  const std::vector<float> none(20, -kInf);
  for (const std::size_t block : {1, 8, 20}) {
    check(none, block, 0);
    std::vector<float> some = random_scores(20, 5.0F, 0.0F, 2);
    for (const std::size_t i : {0, 1, 2, 3, 4, 5, 6, 7, 11, 19}) some[i] = -kInf;
    check(some, block, kUsual);
    CHECK(computed(some, block).probabilities[0] == 0.0);
  }
  RowSoftmax row;
  const SoftmaxScale scale(kHeadDim);
  CHECK_FALSE(row.passed_by(-kInf, scale));
  CHECK(row.raise(-kInf, scale) == 1.0F);
  CHECK(row.offset(scale) == 0.0F);
  CHECK(row.raise(-1e30F, scale) == 0.0F);
}

TEST_CASE("row softmax: huge scores neither overflow nor lose the differences between them",
          "[attention][prefill][softmax]") {
  // Neighbours of f32 at 1e12 differ by 2^16, so that only equal scores share a row; f64 makes of them the same.
  for (const std::size_t block : {1, 2, 6}) {
    CAPTURE(block);
    check({1e12F, -1e12F, 1e12F, 0.0F, 1e6F, 9.9e11F}, block, kUsual);
    check({-1e12F, -1e12F, -2e12F, -3e12F}, block, kUsual);
    check({1e12F, 2e12F, 3e12F, 3e12F}, block, kUsual);
    check({-1e12F, 1.0F, 2.0F}, block, kUsual);
    check({FLT_MAX, -FLT_MAX, FLT_MAX}, block, kUsual);
  }
  // Just past the limit of folding, where neighbours differ by 2^-4: the subtraction is exact.
  const SoftmaxScale scale(kHeadDim);
  const float past = 1.01F * RowSoftmax::kFoldLimit / scale.log2;
  check({past, past + 1.0F, past + 2.0F, past - 3.0F}, 2, kUsual);
}

TEST_CASE("row softmax: m may pass the limit of folding within a row", "[attention][prefill][softmax]") {
  // c m is rounded by up to 2^-9 on one side of the limit only, and with it what was summed before: ln 2 x 2^-8.
  const SoftmaxScale scale(kHeadDim);
  const float limit = RowSoftmax::kFoldLimit / scale.log2;
  for (const float sign : {1.0F, -1.0F}) {
    CAPTURE(sign);
    const float below = sign * limit - 0.6F * scale.margin;
    const float above = sign * limit + 0.6F * scale.margin;
    RowSoftmax row;
    row.raise(below, scale);
    const bool folded = row.folds(scale);
    row.raise(above, scale);
    CHECK(row.folds(scale) != folded);
    check({below, below + 1.0F, above, above - 2.0F}, 2, 0x1p-8);
  }
}

TEST_CASE("row softmax: scores that overflowed share the row", "[attention][prefill][softmax]") {
  const Row row = computed({1.0F, kInf, kInf, -5.0F}, 2);
  CHECK(row.probabilities == std::vector<double>{0.0, 0.5, 0.5, 0.0});
  CHECK(std::isfinite(row.log_sum_exp));
}

}  // namespace
}  // namespace inferometer
