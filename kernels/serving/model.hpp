// The model behind a serving engine: a CUDA decoder, a CPU decoder, or a model of what either would cost.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/serving/step_batch.hpp"

namespace inferometer {

class ServingModel {
 public:
  ServingModel() = default;
  ServingModel(const ServingModel&) = delete;
  ServingModel& operator=(const ServingModel&) = delete;
  virtual ~ServingModel() = default;

  // Makes the copies, then computes the rows. `next` has an element for each row; those of rows that sample are set to
  // their next token, others are left as they are. Returns the ns by which the step moves the clock on: measured, or
  // computed; not negative.
  virtual std::int64_t step(const StepBatch& batch, std::span<TokenId> next) = 0;
};

}  // namespace inferometer
