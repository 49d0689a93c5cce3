// inferometer report: results files as Markdown tables.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>

#include "experiments/command.hpp"
#include "harness/results/file_write.hpp"
#include "harness/results/markdown.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

struct Typed {
  std::vector<std::string> files;
  std::string output;
};

Json read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw ConfigError("report: " + path + " cannot be opened");
  try {
    return Json::parse(file);
  } catch (const Json::parse_error& error) {
    throw ConfigError("report: " + path + " is no JSON: " + error.what());
  }
}

int report(const Typed& typed) {
  // Links lead from the place of the report to its sources.
  const fs::path folder = fs::absolute(typed.output.empty() ? "." : typed.output).parent_path();
  std::vector<NamedResults> results;
  for (const std::string& path : typed.files) {
    const fs::path source = typed.output.empty() ? fs::path(path) : fs::absolute(path).lexically_relative(folder);
    results.push_back({source.generic_string(), read_json(path)});
  }
  std::string text;
  try {
    text = markdown_report(results);
  } catch (const std::runtime_error& error) {
    throw ConfigError("report: " + std::string(error.what()));
  }
  if (typed.output.empty()) {
    std::cout << text;
  } else {
    write_file_atomically(typed.output, text);
  }
  return 0;
}

}  // namespace

Command add_report_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("report", "Results files as Markdown tables");
  app->add_option("FILE", typed->files, "Results files (JSON)")->required();
  app->add_option("-o,--output", typed->output, "Write the tables to this file instead of standard output");
  return {app, [typed](const Arguments&) { return report(*typed); }};
}

}  // namespace inferometer
