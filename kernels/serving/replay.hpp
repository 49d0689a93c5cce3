// Requests at their planned arrivals, through a fresh engine, to the end of the last one.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "kernels/serving/engine.hpp"
#include "kernels/serving/model.hpp"

namespace inferometer {

struct RefusedRequest {
  SequenceId id = 0;
  std::string reason;  // a sentence with the figures
  bool operator==(const RefusedRequest&) const = default;
};

struct Replay {
  std::vector<RequestRecord> records;  // in the order of their ends
  std::vector<RefusedRequest> refused;
  ServingLedger ledger;
  std::int64_t end_ns = 0;   // when the last step ended, or the last request came
  std::int64_t busy_ns = 0;  // of all steps
  std::int64_t host_ns = 0;  // of all steps
  std::int64_t idle_ns = 0;  // in which nothing ran
  bool operator==(const Replay&) const = default;
};

// Open loop: a request is submitted when its planned arrival has come, however the engine fares; one that comes within
// a step waits for its end. The clock starts at 0, moves by what the model says of each step, and jumps to the next
// arrival where nothing runs. Every replay has an engine of its own, so that none finds what another left in a cache.
// `requests` are in order of arrival, none before 0; throws ProblemError naming arrival_ns where they are not. What the
// engine refuses is listed. `observe` is shown every batch before it is computed.
Replay replay(const ServingConfig& config, ServingModel& model, std::span<const ServingRequest> requests,
              const std::function<void(const StepBatch&)>& observe = {});

}  // namespace inferometer
