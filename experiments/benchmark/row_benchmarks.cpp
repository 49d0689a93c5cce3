#include "experiments/benchmark/row_benchmarks.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "harness/operator/registry.hpp"
#include "harness/results/build_info.hpp"
#include "harness/results/exports.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/status.hpp"
#include "harness/run/row_record.hpp"

namespace inferometer {
namespace {

// Fields that have the operator's default are left out: names are read by people.
std::string name_of(const SweepRow& row) {
  const Operator* op = find_operator(row.operator_name);
  Fields said;
  for (const auto& field : row.problem) {
    const auto info = std::find_if(op->fields.begin(), op->fields.end(),
                                   [&](const FieldInfo& known) { return known.name == field.first; });
    if (info == op->fields.end() || field.second != info->default_value) said.push_back(field);
  }
  const std::string problem = problem_word({{"problem", fields_json(said)}});
  return row.operator_name + "/" + row.variant + (problem.empty() ? "" : "/" + problem);
}

// A counter that is no number would make the JSON invalid.
void add_counter(benchmark::State& state, const std::string& name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) state.counters[name] = *value;
}

void add_counters(benchmark::State& state, const Record& record) {
  if (record.rates) {
    add_counter(state, "bytes_per_second", record.rates->bytes_per_s);
    add_counter(state, "flops_per_second", record.rates->flops_per_s);
    add_counter(state, "fraction_of_ceiling", record.rates->fraction_of_ceiling);
  }
  add_counter(state, "ci_half_width_ratio", record.timing->isolated.ci_half_width_ratio);
  for (const Metric& metric : record.metrics) add_counter(state, metric.name, metric.value);
}

// "cuda 12.8, torch 2.9.1": what a peer runs on; empty for our own variants.
std::string versions_label(const Record& record) {
  std::string label;
  for (const auto& [name, version] : record.versions)
    label.append(label.empty() ? "" : ", ").append(name).append(" ").append(version);
  return label;
}

}  // namespace

void RowBenchmarks::Silent::output(const std::string& line) { std::fprintf(stderr, "worker: %s\n", line.c_str()); }

RowBenchmarks::RowBenchmarks(const Sweep& sweep, std::uint64_t seed, int gpu_ordinal)
    : sweep_(sweep), executor_(session_config(sweep, seed, gpu_ordinal), interrupt_, observer_) {}

std::vector<std::string> RowBenchmarks::names() const {
  std::vector<std::string> names;
  for (const SweepRow& row : sweep_.rows) names.push_back(name_of(row));
  return names;
}

Record RowBenchmarks::measured(const SweepRow& row) {
  try {
    return executor_.run(row);
  } catch (const Interrupted& error) {
    return row_record(row, Status::error, error.what());
  } catch (const CannotGoOn& error) {
    return row_record(row, Status::crashed, error.what());
  }
}

void RowBenchmarks::register_all() {
  executor_.open();
  const DeviceReport& devices = executor_.measure_host();
  benchmark::AddCustomContext("git_commit", build_info().git_commit);
  if (devices.gpu) {
    benchmark::AddCustomContext("gpu", devices.gpu->name);
    benchmark::AddCustomContext("driver", devices.gpu->driver);
  }
  for (const SweepRow& row : sweep_.rows) {
    const auto run = [this, &row](benchmark::State& state) {
      const Record record = measured(row);
      if (record.status != Status::ok) {
        failed_ = failed_ || !is_success(record.status);
        const std::string reason = std::string(status_name(record.status)) + ": " + record.reason;
        state.SkipWithError(reason.c_str());
        return;
      }
      constexpr double kNsPerSecond = 1e9;
      for ([[maybe_unused]] const auto _ : state) state.SetIterationTime(record.timing->headline_ns / kNsPerSecond);
      add_counters(state, record);
      state.SetLabel(versions_label(record));
    };
    benchmark::RegisterBenchmark(name_of(row).c_str(), run)
        ->UseManualTime()
        ->Iterations(1)
        ->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace inferometer
