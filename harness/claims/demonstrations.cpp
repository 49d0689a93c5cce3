#include "harness/claims/demonstrations.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace inferometer {
namespace {

// Flash attention keeps, of the scores it has seen, their maximum m and l = sum exp(s - m).
Demonstration log_sum_exp() {
  constexpr std::array<double, 3> kScores{10, 11, 12};
  const double m = *std::max_element(kScores.begin(), kScores.end());
  double l = 0;
  for (const double score : kScores) l += std::exp(score - m);
  return {.name = "log-sum-exp",
          .sentence =
              "Of the scores 10, 11 and 12. What is merged or differentiated with the wrong one forgets how large the "
              "scores were.",
          .figure = "log of the sum of exp(score)",
          .wrong_rule = "l + log(l)",
          .right_rule = "m + log(l)",
          .wrong = l + std::log(l),
          .right = m + std::log(l)};
}

// The keys that query i of `queries` may see of `keys`: those up to its own place. The last query belongs to the last
// key, since the keys before it were there already (a cache).
Demonstration causal_alignment() {
  constexpr int kQueries = 1;
  constexpr int kKeys = 8;
  const auto visible = [](int first_query_at) {
    int count = 0;
    for (int key = 0; key < kKeys; ++key) count += key <= first_query_at ? 1 : 0;
    return count;
  };
  return {.name = "causal mask",
          .sentence =
              "One new query behind a cache of 8 keys. Aligned top left it sees the oldest key and nothing else: "
              "decode with a cache answers by the first token.",
          .figure = "keys that the query sees",
          .wrong_rule = "key <= query",
          .right_rule = "key <= query + keys - queries",
          .wrong = static_cast<double>(visible(0)),
          .right = static_cast<double>(visible(kKeys - kQueries))};
}

// Two weights of 0.4 on a grid of whole numbers; their inputs have variance 1 and correlation 0.9. The error of the
// output is d^T H d, d being the errors of the weights (Frantar et al., GPTQ, 2023, eq. 1).
Demonstration gptq() {
  constexpr double kCorrelation = 0.9;
  constexpr double kWeight = 0.4;
  const auto output_error = [](double d0, double d1) {
    return std::sqrt(d0 * d0 + 2 * kCorrelation * d0 * d1 + d1 * d1);
  };
  const double first_error = kWeight - std::round(kWeight);
  // The first weight's error moves the second by -[H^-1]_10 / [H^-1]_00, which is the correlation.
  const double moved = kWeight + kCorrelation * first_error;
  return {.name = "GPTQ",
          .sentence =
              "Two weights of 0.4 on a grid of whole numbers, inputs with correlation 0.9. Rounding in groups is RTN; "
              "GPTQ lets the second weight make up for the first one's error.",
          .figure = "error of the output",
          .wrong_rule = "round each weight",
          .right_rule = "round, then update the rest",
          .wrong = output_error(first_error, kWeight - std::round(kWeight)),
          .right = output_error(first_error, kWeight - std::round(moved))};
}

// Two output channels of one group of inputs; the second one's weights are a hundredth of the first one's.
Demonstration group_scales() {
  constexpr std::array<double, 4> kLarge{7, -3, 5, -6};
  constexpr std::array<double, 4> kSmall{0.07, -0.03, 0.05, -0.06};
  constexpr double kLargestCode = 7;  // of 4 bits, symmetric
  const auto rms_error = [&](double scale) {
    double error = 0;
    double norm = 0;
    for (const double weight : kSmall) {
      error += std::pow(weight - scale * std::round(weight / scale), 2);
      norm += weight * weight;
    }
    return std::sqrt(error / norm);
  };
  const auto scale_of = [](const auto& weights) {
    double largest = 0;
    for (const double weight : weights) largest = std::max(largest, std::abs(weight));
    return largest / kLargestCode;
  };
  return {.name = "group scales",
          .sentence =
              "Four weights of up to 0.07 beside another output channel's of up to 7, 4 bits. One scale for the group "
              "of inputs rounds the small channel to nothing.",
          .figure = "relative error of the small channel",
          .wrong_rule = "one scale a group",
          .right_rule = "one a group and output channel",
          .wrong = rms_error(scale_of(kLarge)),
          .right = rms_error(scale_of(kSmall))};
}

Demonstration int4_size() {
  constexpr double kGroup = 128;
  constexpr double kF16Bits = 16;
  constexpr double kF32Bits = 32;
  constexpr double kCodeBits = 4;
  return {
      .name = "INT4 memory",
      .sentence = "Weights in groups of 128 with FP16 scales, against FP16. 8x is the ratio to FP32, without scales.",
      .figure = "times smaller than FP16",
      .wrong_rule = "32 / 4",
      .right_rule = "16 / (4 + 16 / 128)",
      .wrong = kF32Bits / kCodeBits,
      .right = kF16Bits / (kCodeBits + kF16Bits / kGroup)};
}

}  // namespace

std::vector<Demonstration> demonstrations() {
  return {log_sum_exp(), causal_alignment(), gptq(), group_scales(), int4_size()};
}

}  // namespace inferometer
