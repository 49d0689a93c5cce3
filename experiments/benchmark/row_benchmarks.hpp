// The rows of a sweep as benchmarks of Google Benchmark, timed by our sampler and checked by our judge.
#pragma once

#include <string>
#include <vector>

#include "harness/run/row_executor.hpp"

namespace inferometer {

// Runs rows for the benchmarks, one at a time, in a worker process; says afterwards how they went.
class RowBenchmarks {
 public:
  RowBenchmarks(const Sweep& sweep, std::uint64_t seed, int gpu_ordinal);

  // "attention_prefill/cpu.flash/q_heads:8/q_len:512/...", one for each row.
  std::vector<std::string> names() const;

  // Opens and measures the devices, adds them to the context that Google Benchmark reports, and registers a benchmark
  // for each row: manual time, one iteration, which is the row's headline. A repetition measures the row again. A
  // row without a time is an error; a peer's row is labelled with the versions of what it ran on. Throws CannotGoOn.
  void register_all();

  bool any_failed() const { return failed_; }  // unsupported rows did not
  bool interrupted() const { return interrupt_.requested(); }

 private:
  class Silent : public RunObserver {
   public:
    void phase(std::string_view /*name*/) override {}
    void output(const std::string& line) override;
    void replaced(const std::string& why) override { output(why); }
    void tick() override {}
  };

  Record measured(const SweepRow& row);

  const Sweep& sweep_;
  InterruptGuard interrupt_;
  Silent observer_;
  WorkerExecutor executor_;
  bool failed_ = false;
};

}  // namespace inferometer
