// The devices of one process, opened and measured, and the rows run on them.
#pragma once

#include <memory>
#include <optional>

#include "harness/run/row_runner.hpp"

namespace inferometer {

struct SessionConfig {
  RowRunner::Settings row;
  int gpu_ordinal = 0;
  bool cpu_rows = false;
  bool gpu_rows = false;              // without any, the GPU is never opened
  std::optional<DeviceReport> known;  // ceilings and noise measured before: not measured again
};

// What the rows of `sweep` need.
SessionConfig session_config(const Sweep& sweep, std::uint64_t seed, int gpu_ordinal);

class Session {
 public:
  // Opens the devices and measures the GPU.
  explicit Session(const SessionConfig& config);
  // Measures the processors, where rows need them: nothing else may run on this machine meanwhile.
  void measure_host();

  const DeviceReport& report() const { return report_; }
  RowOutcome run(const SweepRow& row, const PhaseCallback& phase);

 private:
  bool measures_host_;
  bool clears_;  // the cache, before each sample
  std::unique_ptr<Device> host_;
  std::unique_ptr<Device> gpu_;
  DeviceReport report_;
  std::unique_ptr<RowRunner> runner_;
};

}  // namespace inferometer
