// inferometer compare: two results files, row by row.
#include <cmath>
#include <cstddef>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "experiments/command.hpp"
#include "harness/results/compare_text.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

struct Typed {
  std::string base;
  std::string now;
  std::string threshold = "5%";
  CompareText text;
};

constexpr std::size_t kMaxResultsBytes = std::size_t{1} << 30;

// "5%" or "0.05".
double ratio_from(const std::string& typed) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(typed, &used);
  } catch (const std::logic_error&) {
    used = 0;  // no number, or none that a double holds: refused below
  }
  const bool percent = used + 1 == typed.size() && typed.back() == '%';
  if (used == 0 || (used != typed.size() && !percent) || !std::isfinite(value) || value < 0)
    throw ConfigError("compare: --threshold must be a ratio or a percentage, like 5% or 0.05, got '" + typed + "'");
  return percent ? value / 100 : value;
}

Json results_from(const std::string& path) {
  return read_json(read_text_file(path, kMaxResultsBytes, "results file"), path);
}

int compare(const Typed& typed) {
  const double threshold = ratio_from(typed.threshold);
  const Json base = results_from(typed.base);
  const Json now = results_from(typed.now);
  try {
    const Comparison comparison = compare_results(base, now, threshold);
    std::cout << comparison_text(comparison, typed.text);
    return exit_code(comparison);
  } catch (const std::exception& error) {
    throw ConfigError("compare: " + typed.base + ", " + typed.now + ": " + error.what());
  }
}

}  // namespace

Command add_compare_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("compare", "What became faster or slower between two results files");
  app->add_option("BASE", typed->base, "Results file to compare with (JSON)")->required();
  app->add_option("NEW", typed->now, "Results file in question (JSON)")->required();
  app->add_option("--threshold", typed->threshold, "Changes up to this much do not count: 5% or 0.05")
      ->capture_default_str();
  app->add_flag("--all", typed->text.all_rows, "Show the rows that stayed the same too");
  app->add_flag("--markdown", typed->text.markdown, "Write a Markdown table");
  app->footer(
      "Exit codes: 0 nothing slower, 1 some row slower, 2 wrong use, 3 rows missing, new or failed,\n"
      "4 not comparable: another device, other clocks, another state of the cache.");
  return {app, [typed](const Arguments&) { return compare(*typed); }};
}

}  // namespace inferometer
