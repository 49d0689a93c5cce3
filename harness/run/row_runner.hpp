// Runs one row on its device: inputs, prepare, check, time, check again, record. Knows no backend.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/results/environment.hpp"
#include "harness/results/record.hpp"
#include "harness/run/tensor_set.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

// What is going on, as it begins: "prepare", "check", "warm-up", "measure".
using PhaseCallback = std::function<void(std::string_view phase)>;

struct RowOutcome {
  Record record;
  bool device_lost = false;  // its context answers every call with an error now: only a new process gets a working one
  bool profiled = false;     // a profiler is attached to this process now: the next row belongs into a new one
};

class RowRunner {
 public:
  struct Settings {
    std::uint64_t seed = 1;
    MeasureConfig measure;
    Limits limits;
    // For profilers: launch the row so many times, between cudaProfilerStart and Stop, instead of timing it. No other
    // kernel runs among them, and the record has no timing.
    int profiled_launches = 0;
  };

  // `gpu` is null where there is none; `report` says why. Device and report outlive the runner.
  RowRunner(Device& host, Device* gpu, const DeviceReport& report, Settings settings);

  // Never throws: what goes wrong is the record's status and reason. `stand_in` takes the place of the variant's own
  // device: a peer's process.
  RowOutcome run(const SweepRow& row, const PhaseCallback& phase, Device* stand_in = nullptr);

 private:
  struct Reference {  // of one problem
    std::string key;
    std::vector<ExpectedSpan> spans;
    std::size_t bytes = 0;
  };

  // The sentence why this row cannot run here; empty when it can.
  std::string unsupported_reason(const ResolvedRow& row) const;
  void measure(ResolvedRow& row, Device& device, MemoryLedger& ledger, const PhaseCallback& phase, Record& record);
  // Runs `set` once on poisoned outputs and judges them. Returns seconds of the launch.
  double check(const ResolvedRow& row, Device& device, TensorSet& set, Record& record);
  // The sets to rotate over, as many as exceed twice the cache and fit. `sets` holds the first, of `set_bytes`, and
  // gets the others; all arguments outlive what is returned.
  InputSets rotating_sets(const ResolvedRow& row, Device& device, MemoryLedger& ledger, std::size_t set_bytes,
                          std::span<std::byte> workspace, std::vector<std::unique_ptr<TensorSet>>& sets) const;
  // The measured phase: a timing, or launches for a profiler. `sets`: those of `input_sets`.
  void time(const ResolvedRow& row, Device& device, const std::vector<std::unique_ptr<TensorSet>>& sets,
            const InputSets& input_sets, double launched_seconds, Record& record) const;
  void note_cache(bool on_gpu, Timing& timing) const;
  void add_rates(bool on_gpu, Record& record) const;
  const std::vector<ExpectedSpan>& expected(const ResolvedRow& row, const Inputs& inputs);

  Device& host_;
  Device* gpu_;
  const DeviceReport& report_;
  Settings settings_;
  // The latest last. The variants of one problem follow one another, but on several devices the processors' rows come
  // before all others.
  std::deque<Reference> references_;
};

}  // namespace inferometer
