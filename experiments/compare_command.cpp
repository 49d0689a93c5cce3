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
  app->add_flag("--all", typed->text.all_rows, "Show the rows that stayed the same or ran on another CPU too");
  app->add_flag("--markdown", typed->text.markdown, "Write a Markdown table");
  app->footer(
      "What must agree: for rows on a GPU its name, compute capability, multiprocessors, memory, highest clock and\n"
      "power limit, in whatever host it is; for rows on the CPU its model and the number of threads; for each row the\n"
      "state of the cache. Where only the hosts differ, rows on GPUs are compared and those on the CPU are named.\n"
      "Exit codes: 0 nothing slower, 1 some row slower, 2 wrong use, 3 rows missing, new, failed or of another CPU,\n"
      "4 not comparable: another device, other clocks, another state of the cache.");
  return {app, [typed](const Arguments&) { return compare(*typed); }};
}

}  // namespace inferometer
