// From what a profiler recorded of a GPU to how long each launch took.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness/measure/timing.hpp"

namespace inferometer {

// Why a profiler has no answer. Nothing else is wrong.
class ProfilerError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel, copy or fill, as it ran on the GPU.
struct ActivityRecord {
  std::uint32_t call = 0;      // number of the API call that queued it; one for all kernels of a graph
  std::uint64_t start_ns = 0;  // 0: it ran, and when is not known
  std::uint64_t end_ns = 0;
  std::string name;
};

// An API call that was made while `launch` was queued.
struct CallRecord {
  std::uint32_t call = 0;
  std::uint64_t launch = 0;
};

// In any order, also of calls that queued nothing and of activities outside all launches.
struct TraceRecords {
  std::vector<ActivityRecord> activities;
  std::vector<CallRecord> calls;
  std::size_t dropped = 0;  // records that are missing here
};

struct LaunchTimes {
  std::vector<double> launch_ns;  // from the beginning of a launch's first activity to the end of its last
  std::vector<KernelTime> kernels;
};

// Of the launches 0 to `launches` - 1, which all launch the same. Throws ProfilerError where a record is missing: a
// time that lacks a kernel would look like a fast launch.
LaunchTimes launch_times(const TraceRecords& records, int launches);

// "flash_kernel" of "_ZN11inferometer12_GLOBAL__N_112flash_kernelILi128EEEvPKv": without namespaces, template arguments
// and parameters. A name that is not mangled stays as it is.
std::string kernel_name(const std::string& symbol);

}  // namespace inferometer
