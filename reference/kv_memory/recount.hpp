// The judge of kv_memory: the same simulation by the plainest means, every request and step one by one.
#pragma once

#include <optional>
#include <string_view>

#include "reference/kv_memory/problem.hpp"

namespace inferometer {

// What the trace alone says: requests, prompt_tokens and output_tokens; all other counts are 0.
KvLedger count_trace(const KvMemoryProblem& problem);

// The whole ledger of a policy: reserve_max, reserve_pow2, reserve_oracle or paged, with or without "cpu." in front.
// Nothing for other policies, whose slots depend on contents, and for problems that would take more than about a
// second.
std::optional<KvLedger> recount(const KvMemoryProblem& problem, std::string_view policy);

}  // namespace inferometer
