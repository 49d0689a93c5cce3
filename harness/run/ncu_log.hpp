// What Nsight Compute counted, read from its log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferometer {

struct KernelCounters {
  std::string kernel;
  int sm = 0;  // architecture of the GPU that it ran on: 90
  double time_ns = 0;
  double dram_bytes = 0;         // read and written
  double tensor_pipe_ratio = 0;  // cycles in which the tensor pipe worked, of all cycles of all SMs
  double occupancy_ratio = 0;    // warps of those that an SM can hold, while it holds any
};

// What is counted, as `ncu --metrics` takes it.
std::string ncu_metric_names();

// Why ncu counted nothing, as its log says; the way out where the reason is a missing permission. Empty where it
// reports no error.
std::string ncu_complaint(std::string_view log);

// The kernels in the log of `ncu --csv --page raw --metrics <the names above>`, in the order of their launches. Throws
// std::runtime_error for a log without kernels, and for a table that lacks a column, a number or a known unit.
std::vector<KernelCounters> read_ncu_log(std::string_view log);

}  // namespace inferometer
