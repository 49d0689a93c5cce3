// inferometer report: results files as an HTML page or as Markdown tables.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "experiments/command.hpp"
#include "experiments/results_input.hpp"
#include "experiments/text_output.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/html/report.hpp"
#include "harness/results/markdown.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

struct Typed {
  std::vector<std::string> files;
  std::string output;
  bool markdown = false;

  // The name of the output says what it is: a page where it is called so, else tables.
  bool html() const { return !markdown && (output.ends_with(".html") || output.ends_with(".htm")); }
};

// The report replaces an earlier one, and no other file.
void check_output(const Typed& typed) {
  const auto refuse = [&](const std::string& sentence) { throw ConfigError("report: " + typed.output + sentence); };
  std::error_code error;
  const fs::file_status status = fs::status(typed.output, error);
  if (!fs::exists(status)) return;  // or cannot be looked at: writing it will say why
  if (!fs::is_regular_file(status)) refuse(" is no file that a report could replace; give another with -o");
  for (const std::string& path : typed.files)
    if (fs::equivalent(typed.output, path, error)) refuse(" is one of the results; give another file with -o");
  std::string first_line;
  std::getline(std::ifstream(typed.output), first_line);
  const std::string_view heading = typed.html() ? kHtmlReportHeading : kReportHeading;
  if (first_line != heading) {
    refuse(" was not written by report (its first line is not '" + std::string(heading) +
           "'); remove it, or give another file with -o");
  }
}

int report(const Typed& typed) {
  if (!typed.output.empty()) check_output(typed);
  // Links lead from the place of the report to its sources.
  const fs::path folder = fs::absolute(typed.output.empty() ? "." : typed.output).parent_path();
  std::vector<NamedResults> results;
  for (const std::string& path : typed.files) {
    const fs::path source = typed.output.empty() ? fs::path(path) : fs::absolute(path).lexically_relative(folder);
    results.push_back({source.generic_string(), read_results(path)});
  }
  std::string text;
  try {
    text = typed.html() ? html_report(results, built_in_parts()) : markdown_report(results);
  } catch (const Json::exception& error) {
    throw ConfigError("report: " + joined(typed.files) + ": a results file lacks what it should have: " + error.what());
  } catch (const std::runtime_error& error) {
    throw ConfigError("report: " + std::string(error.what()));
  }
  put_text("report", typed.output, text);
  return 0;
}

}  // namespace

Command add_report_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("report", "Results files as an HTML page or as Markdown tables");
  app->add_option("FILE", typed->files, "Results files (JSON)")->required();
  app->add_option("-o,--output", typed->output,
                  "A page with charts where the name ends in .html; else Markdown tables (default: standard output)")
      ->check(not_empty());
  app->add_flag("--markdown", typed->markdown, "Markdown tables, whatever the name of the output");
  return {app, [typed](const Arguments&) { return report(*typed); }};
}

}  // namespace inferometer
