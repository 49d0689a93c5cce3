// A model that computes nothing: how long a step would take, from the rates of measured kernels, so that any
// machine can study schedules.
#pragma once

#include "kernels/serving/model.hpp"
#include "reference/serving/problem.hpp"  // StepCost

namespace inferometer {

// What a row costs by, or all of a batch: the sums in StepCost's formula.
struct StepLoad {
  std::int64_t sampled = 0;  // rows that sample
  std::int64_t keys = 0;
  std::int64_t pairs = 0;
  std::int64_t prompts = 0;  // rows of more than one token
};
StepLoad load_of(const StepRow& row);
StepLoad load_of(const StepBatch& batch);

double step_time_ns(const StepCost& cost, const StepBatch& batch);

// Its next token is a hash of the sequence's id and the token's position: the same in every schedule.
class CostModel : public ServingModel {
 public:
  explicit CostModel(const StepCost& cost);  // throws ProblemError naming the coefficient
  StepTime step(const StepBatch& batch, std::span<TokenId> next) override;  // rounded to ns

 private:
  StepCost cost_;
};

}  // namespace inferometer
