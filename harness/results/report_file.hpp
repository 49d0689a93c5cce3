// What a report shows of a results file, in Markdown and in HTML: read once, refused in one sentence.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/results/json.hpp"
#include "harness/results/metrics.hpp"
#include "harness/results/record.hpp"
#include "harness/results/shown_fields.hpp"

namespace inferometer {

struct NamedResults {
  std::string path;  // shown as the source of the numbers
  Json json;         // schema inferometer.results/1
};

struct ReportRow {
  Record record;
  std::optional<double> speedup;
};

struct ReportFile {
  std::string question;
  std::string baseline;    // a variant; empty without one
  std::string provenance;  // "NVIDIA H200, driver 580.1, CUDA 13.0; 2026-11-29; commit 0123456789"
  std::vector<ReportRow> rows;
  ShownFields fields;
  MetricColumns metrics;
};

// Throws std::runtime_error naming the file when it is no results file, or one that no single table can show.
ReportFile read_report_file(const NamedResults& source);

}  // namespace inferometer
