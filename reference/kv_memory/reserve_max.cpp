// kv_memory / cpu.reserve_max: every request reserves the longest sequence that the model takes.
#include "harness/operator/variant.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/reservation_placement.hpp"

namespace inferometer {
namespace {

void run(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  ReservationPlacement policy(ReservationPolicy::maximum, problem);
  simulate(problem, policy, tensors);
}

const RegisterVariant<KvMemory> registered{{
    .name = "cpu.reserve_max",
    .summary = "a contiguous range of max_length for every request",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
