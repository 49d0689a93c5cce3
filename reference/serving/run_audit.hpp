// What must hold of a serving run, whatever its policy, and what follows from the policy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reference/serving/problem.hpp"

namespace inferometer {

// A sentence for the first thing that does not hold; empty when all holds.
std::string audit_run(const ServingProblem& problem, std::string_view variant, const ServingRun& run);

// Outputs of the first requests, up to 2,000 tokens, by audit_chosen: a sentence for the first that no decoder would
// choose. Of a small model, and not of a simulation.
std::string audit_tokens(const ServingProblem& problem, const ServingRun& run);

// What a policy makes of requests that are all there at the start, in contiguous slots: counted batch by batch, or by
// when each slot is free again. Nothing for other problems, and for chunked.
struct SlotRecount {
  std::int64_t steps = 0;
  std::int64_t peak_running = 0;
  std::int64_t ended = 0;           // slot-steps; static
  std::int64_t padding_tokens = 0;  // static
};
std::optional<SlotRecount> recount_slots(const ServingProblem& problem, std::string_view policy);

}  // namespace inferometer
