// kv_memory / cpu.reserve_oracle: a request reserves exactly what it will store, as if its outputs were known.
#include "harness/operator/variant.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/reservation_placement.hpp"

namespace inferometer {
namespace {

void run(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  ReservationPlacement policy(ReservationPolicy::oracle, problem);
  simulate(problem, policy, tensors);
}

const RegisterVariant<KvMemory> registered{{
    .name = "cpu.reserve_oracle",
    .summary = "a contiguous range of exactly what will be stored, known beforehand",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
