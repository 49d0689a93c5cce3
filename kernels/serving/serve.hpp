// Problems of the operator `serving`, served: the whole of a variant's run().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/serving/config.hpp"
#include "kernels/serving/model.hpp"
#include "reference/serving/problem.hpp"

namespace inferometer {

// The engine that a problem asks for. With block_size 0 its blocks are slots of max_length tokens.
ServingConfig serving_config(const ServingProblem& problem, ServingPolicy policy);

// A sentence where the problem's budget is too small for the policy chunked: no token would be left for a prompt.
std::optional<std::string> budget_too_small(const ServingProblem& problem);

// A sentence where a decoder cannot attend to prompts as the problem asks: materialised attention reads keys and values
// of 16 bits from one piece of memory.
std::optional<std::string> attention_impossible(const ServingProblem& problem);

// Replays the problem's requests with this policy and model, and writes what came of it to run_elements(problem)
// integers on the host. `clock` says of which kind the model's times are. Throws TraceError.
void serve(const ServingProblem& problem, ServingPolicy policy, ServingModel& model, ServingClock clock,
           std::int32_t* elements);

}  // namespace inferometer
