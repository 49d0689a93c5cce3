// kv_memory / cpu.reserve_pow2: a request reserves its prompt and its outputs rounded up to a power of two.
#include "harness/operator/variant.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/reservation_placement.hpp"

namespace inferometer {
namespace {

void run(const KvMemoryProblem& problem, const KvMemoryTensors& tensors, const Launch&) {
  ReservationPlacement policy(ReservationPolicy::power_of_two, problem);
  simulate(problem, policy, tensors);
}

const RegisterVariant<KvMemory> registered{{
    .name = "cpu.reserve_pow2",
    .summary = "a contiguous range for the prompt and the outputs rounded up to a power of two",
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
