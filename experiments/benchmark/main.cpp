// inferometer_benchmark: the rows of a sweep under Google Benchmark, with its flags, its JSON and its compare.py.
#include <benchmark/benchmark.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iostream>
#include <regex>
#include <string>
#include <string_view>

#include "experiments/benchmark/row_benchmarks.hpp"
#include "experiments/project.hpp"
#include "harness/peer/peer_registry.hpp"
#include "harness/results/json_error_words.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/worker.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

struct Typed {
  std::string config;
  SweepOptions sweep;
  std::uint64_t seed = 1;
  int device = 0;
};

void add_options(CLI::App& app, Typed& typed) {
  app.add_option("CONFIG", typed.config, "Sweep config (JSON)")->required();
  app.add_option("--set", typed.sweep.set, "KEY=VALUE, as for run")->allow_extra_args(false);
  app.add_option("--variants", typed.sweep.variants, "Names or globs, with commas between, as for run")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--filter", typed.sweep.filter, "Only rows for which this holds, as for run");
  app.add_option("--row", typed.sweep.row, "Only the row with this id");
  app.add_flag("--quick", typed.sweep.quick, "First and last value of each axis, wider error bars");
  app.add_option("--seed", typed.seed, "Seed of all inputs")->capture_default_str();
  app.add_option("--device", typed.device, "GPU, by its ordinal")->capture_default_str()->check(CLI::Range(0, 1023));
  app.footer(
      "Options that begin with --benchmark_ are Google Benchmark's: --benchmark_filter, --benchmark_repetitions,\n"
      "--benchmark_out and so on; --benchmark_min_time has no effect, since the sweep says how rows are measured.\n"
      "Exit codes: 0 every row ok or unsupported, 1 some row failed, 2 wrong use, 130 interrupted.");
}

// Google Benchmark empties its output file before it sees that no benchmark matches, and calls that a success.
void require_match(const std::vector<std::string>& names) {
  std::string filter = benchmark::GetBenchmarkFilter();
  if (filter.empty() || filter == "all") return;
  const bool negative = filter.front() == '-';
  if (negative) filter.erase(0, 1);
  try {
    const std::regex pattern(filter, std::regex::extended);
    const bool any = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return std::regex_search(name + "/iterations:1/manual_time", pattern) != negative;
    });
    if (!any) throw ConfigError("--benchmark_filter matches none of the " + std::to_string(names.size()) + " rows");
  } catch (const std::regex_error& error) {
    throw ConfigError("--benchmark_filter is no regular expression: " + std::string(error.what()));
  }
}

int run(const Typed& typed) {
  const Sweep sweep = load_sweep(typed.config, typed.sweep);
  RowBenchmarks rows(sweep, typed.seed, typed.device);
  require_match(rows.names());
  rows.register_all();
  benchmark::RunSpecifiedBenchmarks();
  if (rows.interrupted()) return kInterrupted;
  return rows.any_failed() ? kRowFailed : kAllWell;
}

int run_command_line(int argc, char** argv) {
  const bool help = std::any_of(argv + 1, argv + argc, [](std::string_view word) { return word == "--help"; });
  if (!help) benchmark::Initialize(&argc, argv);  // takes its own flags away; its help knows nothing of ours
  CLI::App app("The rows of a sweep under Google Benchmark.", "inferometer_benchmark");
  Typed typed;
  add_options(app, typed);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::cerr << "inferometer_benchmark: " << error.what() << "; --help says more\n";
    return kWrongUse;
  }
  return run(typed);
}

}  // namespace
}  // namespace inferometer

int main(int argc, char** argv) {
  try {
    inferometer::register_peers(inferometer::project_folder() + "/experiments/peers");
    if (argc > 1 && std::string_view(argv[1]) == "worker") return inferometer::worker_main(argc, argv);
    return inferometer::run_command_line(argc, argv);
  } catch (const inferometer::ConfigError& error) {
    std::cerr << "inferometer_benchmark: " << inferometer::without_json_tags(error.what()) << '\n';
    return inferometer::kWrongUse;
  } catch (const std::exception& error) {
    std::cerr << "inferometer_benchmark: " << inferometer::without_json_tags(error.what()) << '\n';
    return inferometer::kRowFailed;
  }
}
