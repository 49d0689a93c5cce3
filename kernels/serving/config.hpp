// How a serving engine schedules: the four policies, and the memory that they share out.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace inferometer {

enum class ServingPolicy : std::uint8_t {
  // Request-level batching: a batch starts when none runs, and nobody joins until its last request has ended. Reserves
  // room for prompt + max_new at the start.
  static_batch,
  // Iteration-level batching (Yu et al., "Orca", OSDI 2022): requests join and leave at every step. Reserves likewise.
  iteration,
  // Paged, on top of it: blocks are taken as tokens come; when none are left, the request that came last gives up its
  // own and is computed again later (Kwon et al., SOSP 2023, section 4.5). Prompts run as a whole.
  continuous,
  // Prompts run in chunks, on top of it: every running request decodes in every step, and what is left of a budget of
  // tokens goes to prompts (Agrawal et al., "Sarathi-Serve", OSDI 2024).
  chunked,
};

std::string_view name_of(ServingPolicy policy);  // "static", "iteration", "continuous", "chunked"
std::span<const ServingPolicy> serving_policies();

struct ServingConfig {
  ServingPolicy policy = ServingPolicy::continuous;
  std::int64_t slots = 32;        // most requests that run at once: the rows of a batch
  std::int32_t num_blocks = 1;    // of the pool
  std::int32_t block_size = 16;   // tokens
  std::int64_t max_length = 0;    // tokens that a request may come to store; 0: what the pool holds
  bool prefix_reuse = false;      // take up blocks of equal prompt beginnings
  std::int64_t token_budget = 0;  // chunked: tokens of a step, at least `slots`; of the others 0: no limit
  // continuous: a step that takes up new prompts runs them alone, and running requests wait for it. How vLLM scheduled
  // before it had chunks; what stalls here is what they remove.
  bool prompts_alone = false;
  bool operator==(const ServingConfig&) const = default;
};

// `config` over contiguous caches: a slot of `max_length` tokens for each row of the batch. To the engine a slot is a
// block that holds a whole sequence, so that the only entry of a block table is the number of the slot; what is longer
// is refused.
ServingConfig with_contiguous_slots(ServingConfig config, std::int32_t max_length);

// Throws ProblemError naming the field.
void check(const ServingConfig& config);

// Whether room for all that a request may store is set aside when it starts.
bool reserves_maximum(ServingPolicy policy);

}  // namespace inferometer
