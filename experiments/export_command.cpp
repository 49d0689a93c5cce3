// inferometer export: results files in the formats of other tools.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>

#include "experiments/command.hpp"
#include "experiments/results_input.hpp"
#include "experiments/text_output.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/compare.hpp"
#include "harness/results/exports.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

struct Typed {
  std::vector<std::string> files;
  std::string format;
  std::string output;
};

const ExportFormat& format_named(const std::string& name) {
  std::vector<std::string> names;
  for (const ExportFormat& format : export_formats()) {
    if (format.name == name) return format;
    names.push_back(format.name);
  }
  if (name.empty()) throw ConfigError("export: --format is missing: " + joined(names));
  throw ConfigError("export: --format: " + unknown_word("format", name, names));
}

int export_results(const Typed& typed) {
  const ExportFormat& format = format_named(typed.format);
  std::vector<Json> results;
  for (const std::string& path : typed.files) {
    std::error_code absent;  // what is not there yet is none of the results
    if (!typed.output.empty() && fs::equivalent(path, typed.output, absent))
      throw ConfigError("export: " + typed.output + " is one of the results; give another file with -o");
    results.push_back(read_results(path));
    try {
      require_results(results.back());
    } catch (const std::exception& error) {
      throw ConfigError("export: " + path + ": " + error.what());
    }
  }
  if (!typed.output.empty()) require_replaceable("export", typed.output);
  std::string text;
  try {
    text = format.write(results);
  } catch (const std::exception& error) {  // of the JSON library, or of who looked for a value
    throw ConfigError("export: " + joined(typed.files) + ": a results file lacks what it should have: " + error.what());
  }
  put_text("export", typed.output, text);
  return 0;
}

}  // namespace

Command add_export_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("export", "Results in the formats of other tools");
  app->add_option("FILE", typed->files, "Results files (JSON)")->required();
  app->add_option("--format", typed->format, "csv, junit, google-benchmark (its JSON) or nvbench (its JSON)");
  app->add_option("-o,--output", typed->output, "Write to this file instead of standard output")->check(not_empty());
  return {app, [typed](const Arguments&) { return export_results(*typed); }};
}

}  // namespace inferometer
