// Two results files, row by row: what became faster, what slower, and what cannot be told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/json.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

enum class Verdict : std::uint8_t {
  slower,
  faster,
  same,
  noisy,       // the interval reaches over a threshold, or there is none; a time is suspect; it may be the clock
  failed,      // has no time in the new file
  missing,     // is in the base file only
  added,       // is in the new file only, or had no time in the base file
  other_host,  // ran on the CPUs of two hosts that differ, in files whose rows on GPUs can be compared
};

struct ComparedRow {
  Verdict verdict = Verdict::noisy;
  std::optional<Record> base;
  std::optional<Record> now;
  std::string estimator;  // "isolated" or "amortized", of both times; empty without a ratio
  double base_ns = 0;
  double now_ns = 0;
  // now over base, and its 95 % confidence interval, which the noise floor widens. No interval below six samples.
  std::optional<double> ratio;
  std::optional<double> ratio_low;
  std::optional<double> ratio_high;
  std::string clock_doubt;  // why the difference may be the clock's (compare_clocks.hpp); empty: it is not
  std::string reason;       // why it failed or has no interval, and whose time is suspect or was interrupted
};

// What measured a file; empty where the file does not say.
struct ComparedProgram {
  std::string commit;          // "0123456789 with changes"
  std::string kernels_sha256;  // of every file of the kernels
};

struct Comparison {
  // Why the files say nothing of each other: another device, other clocks, times of another cache state. Empty if they
  // do.
  std::vector<std::string> obstacles;
  std::vector<std::string> warnings;  // whose cold rows are not cold
  ComparedProgram base;
  ComparedProgram now;
  std::vector<std::string> host_differences;  // why rows have the verdict other_host
  double threshold = 0;                       // changes up to this ratio - 1 do not count
  double noise_floor = 0;         // how far two runs of the same kernel differed in either file, as a ratio - 1
  std::vector<ComparedRow> rows;  // in the order of the base file, then those that were added
};

// `base` and `now` have the schema inferometer.results/1. Rows are the same if operator and variant are and the problem
// is, where a field that one file lacks has the operator's default: it came with a later version. Rows without a time
// in both files are left out if both are unsupported. Throws std::runtime_error for what is no results file.
Comparison compare_results(const Json& base, const Json& now, double threshold);

// One row, set against another of the same problem; without a ratio where both were measured with another state of the
// cache. `noise`: how far two runs of the same kernel differ, as a ratio - 1.
ComparedRow compare_records(const Record& base, const Record& now, double threshold, double noise);

// Other programs took a processor away during too many of its samples.
bool was_interrupted(const Record& record);

// Throws std::runtime_error for what has not the schema inferometer.results/1.
void require_results(const Json& json);

// The whole comparison's exit code: 4 not comparable, 1 some row slower, 3 some row missing, added, failed or of
// another host, else 0.
int exit_code(const Comparison& comparison);

std::string_view verdict_name(Verdict verdict);

}  // namespace inferometer
