// Results in the formats of other tools.
#pragma once

#include <string>
#include <vector>

#include "harness/results/json.hpp"

namespace inferometer {

// A row for each row, a column for each field, figure and metric that some row has (RFC 4180). Empty cells: not known.
std::string export_csv(const std::vector<Json>& results);

// A test suite for each file, a test case for each row: unsupported rows are skipped, what went wrong is a failure. For
// the test reports of CI systems.
std::string export_junit(const std::vector<Json>& results);

// As Google Benchmark's --benchmark_out writes it, for its compare.py: real_time is the headline, rows without a time
// have error_occurred.
std::string export_google_benchmark(const std::vector<Json>& results);

// As NVBench's --json writes it, version 1.0.0, for nvbench_compare: a benchmark for each variant, a state for each
// row. What NVBench calls the mean of cold times is our isolated median, and its relative deviation is 1.4826 times our
// MAD over it; its batch time is our amortized one.
std::string export_nvbench(const std::vector<Json>& results);

struct ExportFormat {
  std::string name;  // as after --format
  std::string (*write)(const std::vector<Json>& results);
};
const std::vector<ExportFormat>& export_formats();

// "batch:1/q_len:512/...": the problem of a row, as one word.
std::string problem_word(const Json& row);

}  // namespace inferometer
