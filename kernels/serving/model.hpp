// The model behind a serving engine: a CUDA decoder, a CPU decoder, or a model of what either would cost.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/serving/step_batch.hpp"

namespace inferometer {

struct StepTime {
  std::int64_t ns = 0;       // by which the step moves the clock on, from the end of the step before
  std::int64_t busy_ns = 0;  // of these, in which the model computed
  std::int64_t host_ns = 0;  // of the others, between steps: scheduling, inputs, outputs
};

class ServingModel {
 public:
  ServingModel() = default;
  ServingModel(const ServingModel&) = delete;
  ServingModel& operator=(const ServingModel&) = delete;
  virtual ~ServingModel() = default;

  // Makes the copies, then computes the rows. `next` has an element for each row; those of rows that sample are set to
  // their next token, others are left as they are. Returns how long it took: measured, or computed; not negative.
  virtual StepTime step(const StepBatch& batch, std::span<TokenId> next) = 0;
};

}  // namespace inferometer
