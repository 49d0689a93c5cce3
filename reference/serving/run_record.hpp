// A run of a serving engine as whole numbers: what a variant writes, and what its judge reads back.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reference/serving/ledger.hpp"
#include "reference/serving/record.hpp"

namespace inferometer {

struct ServingProblem;

// Which clock the times are of.
enum class ServingClock : std::uint8_t {
  simulated,  // moved by what a step is said to cost
  host,       // the host's, with a decoder on the host
  device,     // the host's, with a decoder on a GPU
};

// Sums over all steps.
struct ServingWork {
  std::int64_t sampled = 0;  // rows that asked for a token
  std::int64_t keys = 0;     // cached tokens read: a row of n tokens behind p others reads p + n
  std::int64_t pairs = 0;    // queries with a key that they see: n p + n (n + 1) / 2
  bool operator==(const ServingWork&) const = default;
};

struct ServingTimes {
  std::int64_t end_ns = 0;        // when the last step ended
  std::int64_t busy_ns = 0;       // in which the model computed
  std::int64_t idle_ns = 0;       // in which nothing ran and no request waited
  std::int64_t host_ns = 0;       // between steps: scheduling, inputs, outputs; the rest is launches
  std::int64_t roofline_ns = 0;   // least time of the same steps on the problem's machine (step_cost.hpp)
  std::int64_t predicted_ns = 0;  // of the same steps by the cost model
  std::int64_t second_ns = 0;     // all steps by a second clock; of a simulation end_ns - idle_ns
  bool operator==(const ServingTimes&) const = default;
};

struct ServingRun {
  ServingClock clock = ServingClock::simulated;
  ServingLedger ledger;
  ServingWork work;
  ServingTimes times;
  std::vector<std::optional<RequestRecord>> requests;  // in the order of the trace; nothing: refused
};

// As one tensor of integers, none of them negative (all bits set is memory that nobody wrote):
//   counts    [kServingCounts, kServingLimbs]    clock, the ledger's 18, ServingWork's and ServingTimes' in order
//   requests  [requests, kServingRequestFields]  outcome (0 refused, 1 completed), reused, recomputed, preemptions
//   outputs   [outputs, 1 + kServingLimbs]       token and its time in ns; 0 where the request was refused
// Requests are in the order of the trace, outputs one request's behind the other's.
// A count has three limbs of 21 bits, the lowest first: exact as floats.
inline constexpr std::int64_t kServingCounts = 29;
inline constexpr std::int64_t kServingLimbs = 3;
inline constexpr std::int64_t kServingRequestFields = 4;
inline constexpr std::int64_t kServingRequestsBegin = kServingCounts * kServingLimbs;  // in the tensor

std::int64_t run_elements(const ServingProblem& problem);

// Throws std::invalid_argument where the run has not the problem's requests, or one without the outputs it asked for;
// std::out_of_range for a count that is negative.
void write_run(const ServingProblem& problem, const ServingRun& run, std::int32_t* elements);

// As it stands there, whatever it is; what the trace says comes from the trace.
ServingRun read_run(const ServingProblem& problem, const std::int32_t* elements);

}  // namespace inferometer
