// inferometer compare: two results files, row by row.
#include <iostream>
#include <memory>

#include "experiments/command.hpp"
#include "experiments/results_input.hpp"
#include "harness/results/compare_text.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

struct Typed {
  std::string base;
  std::string now;
  std::string threshold = "5%";
  CompareText text;
};

int compare(const Typed& typed) {
  const double threshold = ratio_from("compare", typed.threshold);
  const Json base = read_results(typed.base);
  const Json now = read_results(typed.now);
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
