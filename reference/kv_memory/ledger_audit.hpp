// What a ledger must satisfy, and the figures that are read from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "reference/kv_memory/problem.hpp"

namespace inferometer {

// A sentence for the first thing that does not hold: the states sum to pool_slots x steps, every output of a request
// that was not refused was generated, and each count is that of the recount where there is one. Empty when all holds.
std::string audit_ledger(const KvMemoryProblem& problem, std::string_view variant, const KvLedger& ledger);

// Shares of slot-steps, from 0 to 1, means over steps, and counts. A share or mean of nothing is not a number: those
// under load where no request ever waited.
std::vector<Metric> ledger_metrics(const KvMemoryProblem& problem, const KvLedger& ledger);

}  // namespace inferometer
