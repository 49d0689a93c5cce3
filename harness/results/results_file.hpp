// A results file: all rows of a run, set against their baseline, with all that is needed to repeat them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/statistics.hpp"
#include "harness/results/environment.hpp"
#include "harness/results/json.hpp"
#include "harness/results/record.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

inline constexpr std::string_view kResultsSchema = "inferometer.results/1";

// Ratio of two headline times, baseline over row, with the interval that the confidence intervals of both medians
// leave; without one where either median has none. Where one headline is isolated and the other amortized, both are
// taken amortized (or isolated). Only between rows that are ok: a suspect time makes no claim.
struct Speedup {
  double ratio = 1;
  std::optional<Interval> interval = Interval{.low = 1, .high = 1};
};
std::optional<Speedup> speedup(const Record& row, const Record& baseline);

using RecordsById = std::map<std::string, Record>;

// Of `row` in this run; none without a baseline or where either has no time.
std::optional<Speedup> speedup_in(const RecordsById& records, const SweepRow& row);

struct RunInfo {
  std::string started_at;
  std::string finished_at;
  std::uint64_t seed = 1;
  std::vector<std::string> argv;  // without folders of the machine (recorded_command.hpp)
  HostInfo host;
  DeviceReport devices;
};

// Rows of the sweep without a record (an interrupted run) are left out.
Json results_json(const Sweep& sweep, const RunInfo& run, const RecordsById& records);

// Of the results file `path`; none when it cannot be read, or is no results file of this program, of whatever version.
std::optional<std::size_t> rows_in_results_file(const std::string& path);

}  // namespace inferometer
