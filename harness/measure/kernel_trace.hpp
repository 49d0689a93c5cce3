// Which kernels a GPU ran, and when: the activity records of CUPTI, the profiler in the CUDA Toolkit. CUDA builds only.
#pragma once

#include <string>

#include "harness/measure/launch_times.hpp"

namespace inferometer {

// Attaches CUPTI to this process. It is opened at run time, so that a program runs without it.
//
// It stays in the process afterwards, recording nothing: kernels that it has met carry its instrumentation, and
// detaching (cuptiFinalize) undoes what other threads may be using. What is to be timed without it belongs before, or
// into another process.
class KernelTrace {
 public:
  // Begins to record. One trace at a time. Throws ProfilerError, with the reason, where there is no CUPTI.
  KernelTrace();
  ~KernelTrace();
  KernelTrace(const KernelTrace&) = delete;
  KernelTrace& operator=(const KernelTrace&) = delete;

  const std::string& tool() const { return tool_; }  // "CUPTI 13.0"

  // What this thread queues while it lives is part of a launch.
  class Launch {
   public:
    explicit Launch(int number);
    ~Launch();
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;
  };

  TraceRecords take() const;  // what was recorded so far; the GPU is idle

 private:
  std::string tool_;
};

}  // namespace inferometer
