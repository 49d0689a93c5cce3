#include "kernels/serving/config.hpp"

#include <array>
#include <limits>
#include <stdexcept>
#include <string>

#include "harness/operator/fields.hpp"

namespace inferometer {
namespace {

constexpr std::array kPolicies{ServingPolicy::static_batch, ServingPolicy::iteration, ServingPolicy::continuous,
                               ServingPolicy::chunked};

void at_least(const char* field, std::int64_t least, std::int64_t value) {
  if (value < least)
    throw ProblemError(
        field, std::string(field) + " must be at least " + std::to_string(least) + ", got " + std::to_string(value));
}

}  // namespace

std::string_view name_of(ServingPolicy policy) {
  switch (policy) {
    case ServingPolicy::static_batch: return "static";
    case ServingPolicy::iteration: return "iteration";
    case ServingPolicy::continuous: return "continuous";
    case ServingPolicy::chunked: return "chunked";
  }
  throw std::invalid_argument("no serving policy has the number " + std::to_string(static_cast<int>(policy)));
}

std::span<const ServingPolicy> serving_policies() { return kPolicies; }

ServingConfig with_contiguous_slots(ServingConfig config, std::int32_t max_length) {
  at_least("slots", 1, config.slots);
  if (config.slots > std::numeric_limits<std::int32_t>::max())
    throw ProblemError("slots", "slots must be at most 2147483647, got " + std::to_string(config.slots));
  config.num_blocks = static_cast<std::int32_t>(config.slots);
  config.block_size = max_length;
  config.max_length = max_length;
  return config;
}

void check(const ServingConfig& config) {
  const std::string policy(name_of(config.policy));
  at_least("slots", 1, config.slots);
  at_least("num_blocks", 1, config.num_blocks);
  at_least("block_size", 1, config.block_size);
  at_least("max_length", 0, config.max_length);
  // With less, a step might have no token left for the prompt that occupies a slot.
  if (config.policy == ServingPolicy::chunked) at_least("token_budget", config.slots, config.token_budget);
  if (config.policy != ServingPolicy::chunked && config.token_budget != 0)
    throw ProblemError("token_budget", "token_budget must be 0 (no limit) where the policy is " + policy + ", got " +
                                           std::to_string(config.token_budget));
  if (config.policy != ServingPolicy::continuous && config.prompts_alone)
    throw ProblemError("prompts_alone", "prompts_alone needs the policy continuous, got " + policy);
}

bool reserves_maximum(ServingPolicy policy) {
  return policy == ServingPolicy::static_batch || policy == ServingPolicy::iteration;
}

}  // namespace inferometer
