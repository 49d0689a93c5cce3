// The requests of a serving problem: a trace's, cut to size, each with the time at which it is planned to come.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/kv_memory/request.hpp"

namespace inferometer {

struct ServingProblem;

// In the order of arrival, with ids from 0. Throws TraceError.
std::vector<KvRequest> served_requests(const ServingProblem& problem);

// Planned, on the run's clock.
std::int64_t arrival_ns(const KvRequest& request);

}  // namespace inferometer
