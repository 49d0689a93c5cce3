// Requests of a trace as requests to serve.
#pragma once

#include "kernels/serving/request.hpp"
#include "reference/kv_memory/problem.hpp"

namespace inferometer {

// Traces have lengths, and ids of prompt beginnings that agree: the prompt gets tokens that agree in the same way, from
// 0 to vocabulary - 1. `rate` scales the trace's own arrivals: at 2 they come twice as fast; at 0 all are there at
// once. Throws ProblemError naming `rate` or `vocabulary`.
ServingRequest serving_request(const KvRequest& request, double rate, TokenId vocabulary);

}  // namespace inferometer
