// A model that computes nothing: how long a step would take, from coefficients fitted to measured kernels, so that any
// machine can study schedules.
#pragma once

#include <cstdint>

#include "kernels/serving/model.hpp"

namespace inferometer {

// Coefficients of a step's time, in ns; finite and not negative.
struct StepCost {
  double step_ns = 0;   // of every step: reading the weights, launches
  double token_ns = 0;  // of each token, padding included: the matrix products, where they are bound by arithmetic
  double key_ns = 0;    // of each cached token that a row reads: the KV cache's bytes
  double pair_ns = 0;   // of each query with a key that it sees: attention's arithmetic in prompts
};

// The time of a step: its rows at these costs. A row of n tokens behind p others reads p + n keys and has
// n p + n (n + 1) / 2 pairs.
double step_time_ns(const StepCost& cost, const StepBatch& batch);

// Its next token is a hash of the sequence's id and the token's position: the same in every schedule.
class CostModel : public ServingModel {
 public:
  explicit CostModel(const StepCost& cost);  // throws ProblemError naming the coefficient
  std::int64_t step(const StepBatch& batch, std::span<TokenId> next) override;  // rounded to ns

 private:
  StepCost cost_;
};

}  // namespace inferometer
