// One row for a profiler: run so that it can be looked at, and the tool's command line that looks at it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

struct ProfileOptions {
  std::uint64_t seed = 1;
  int device = 0;    // GPU ordinal
  int launches = 5;  // in the measured phase
};

// Runs the one row of `sweep` in this process: prepared, checked, warmed up, launched a few times inside the NVTX range
// `measure` and between cudaProfilerStart and Stop, checked again. Nothing is timed: neither cache-clearing nor
// spinning kernels run, and ceilings are not measured.
Record profile_row(const Sweep& sweep, const ProfileOptions& options);

enum class ProfileTool : std::uint8_t { nsys, ncu };
std::optional<ProfileTool> parse_profile_tool(std::string_view name);  // "nsys" or "ncu"

// The tool's words, then `program`: the words that make this program run the row as above. What is collected lies in
// the measured phase alone. `report` is the path of the tool's report, without a suffix. Throws ConfigError where the
// tool cannot see the row: ncu knows kernels of this process on a GPU only.
std::vector<std::string> tool_command(ProfileTool tool, const SweepRow& row, const std::string& report,
                                      const std::vector<std::string>& program);

// ncu's words that have it write what it counts (ncu_log.hpp) to the file `log`; the rest as above. Its caches are
// those of the row's timing: cleared before each kernel, or left warm. Clocks are left as they are in a timing.
std::vector<std::string> counting_command(const SweepRow& row, CacheMode cache, const std::string& log,
                                          const std::vector<std::string>& program);

}  // namespace inferometer
