// kv_memory: what a policy for the memory of KV caches makes of a pool of slots while requests come and go: how much of
// it holds tokens, how much is reserved, wasted or free, and how many requests run at once. A simulation step by step
// (one iteration of a serving system each), in which every slot of every step is accounted for (ledger.hpp).
//
// A variant is a policy and calls itself "cpu.<policy>": it implements KvPlacement (placement.hpp) and runs simulate().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/kv_memory/ledger.hpp"
#include "reference/kv_memory/placement.hpp"
#include "reference/kv_memory/request.hpp"

namespace inferometer {

struct KvMemoryProblem {
  std::string trace = "synthetic_sharegpt";  // a file or a synthetic distribution (request.hpp)
  std::int64_t requests = 2000;              // the first of the trace; 0: all of a file
  std::string model = "opt_13b";             // model_shape.hpp
  std::int64_t max_length = 0;               // tokens a request may store, at most; 0: the model's own limit
  std::int64_t pool_bytes = std::int64_t{12} << 30;
  std::int64_t block_size = 16;          // tokens; paged policies
  std::string contiguous = "first_fit";  // where reservations lie: first_fit or buddy
  std::int64_t kv_bits = 16;
  std::int64_t kv_group_size = 0;         // elements that share a scale at 8 and 4 bits; 0: head_dim
  std::string order = "fcfs";             // of admission: fcfs or shortest_first (simulation.hpp)
  std::string arrivals = "all_at_start";  // or trace: when the trace says
  double step_ms = 30;                    // arrivals by trace: how long a step takes
  double watermark_ratio = 0.01;          // of the blocks, kept free when a paged policy admits a request
  std::int64_t trace_seed = 1;            // of a synthetic trace

  std::int64_t token_bytes() const;  // keys and values of one token
  std::int64_t pool_slots() const;   // tokens that the pool can hold
};

struct KvMemoryTensors {
  std::int32_t* ledger = nullptr;  // [kKvCounts, kKvLimbs]  KvLedger::write
};

struct KvMemory {
  static constexpr std::string_view kName = "kv_memory";
  using Problem = KvMemoryProblem;
  using Tensors = KvMemoryTensors;
};

// Runs the requests of the problem through the policy: the whole of a variant's run(). Throws TraceError.
void simulate(const KvMemoryProblem& problem, KvPlacement& policy, const KvMemoryTensors& tensors);

}  // namespace inferometer
