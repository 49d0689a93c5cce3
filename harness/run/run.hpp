// Runs a sweep: rows in a worker process, a journal line for each, one results file at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/results/against.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

struct RunOptions {
  std::string output;             // the results file; its journal is `output` with "l" appended (FILE.jsonl)
  bool resume = false;            // rows already in the journal of the same run are not run again
  bool in_process = false;        // no worker: a crash ends the run (profilers, debuggers)
  bool quiet = false;             // no progress on standard error
  bool print_table = true;        // the result table on standard output, at the end
  std::uint64_t seed = 1;         // of every input
  int device = 0;                 // GPU ordinal
  std::vector<int> devices = {};  // several, a worker for each, instead of `device`
  // The command line, as recorded_command.hpp has it; `reproduce` repeats what a row depends on (row_commands.hpp).
  std::vector<std::string> argv = {};
  std::optional<Against> against = std::nullopt;  // one device, no resume; the comparison follows the table
};

// Exit code: 0 every row ok or unsupported; 1 some row is not, or the results could not be written; 2 wrong use
// (output path, a journal of another run, another run writes the same file); 130 interrupted by Ctrl-C or SIGTERM.
// With `against`, where every row is ok or unsupported, that of the comparison (compare.hpp): 0, 1, 3 or 4.
// The result table goes to standard output; messages and progress to standard error.
int run_sweep(const Sweep& sweep, const RunOptions& options);

}  // namespace inferometer
