// inferometer merge: the parts of a sweep, run as shards, as one results file.
#include <filesystem>
#include <iostream>
#include <memory>
#include <system_error>

#include "experiments/command.hpp"
#include "experiments/results_input.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/file_write.hpp"
#include "harness/results/merge.hpp"
#include "harness/run/journal.hpp"
#include "harness/run/output_path.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr int kIncomplete = 3;

struct Typed {
  std::vector<std::string> parts;
  std::string output;
  std::vector<std::string> allow;
};

MergeAllowed allowed_by(const std::vector<std::string>& words) {
  MergeAllowed allowed;
  for (const std::string& word : words) {
    if (word == "config") {
      allowed.config = true;
    } else if (word == "binary") {
      allowed.binary = true;
    } else if (word == "devices") {
      allowed.devices = true;
    } else if (word == "duplicates") {
      allowed.duplicates = true;
    } else {
      throw ConfigError("merge: --allow: " +
                        unknown_word("difference", word, {"config", "binary", "devices", "duplicates"}));
    }
  }
  return allowed;
}

std::string named(const std::vector<std::string>& ids) {
  constexpr std::size_t kMostNames = 10;
  if (ids.size() <= kMostNames) return joined(ids);
  return joined({ids.begin(), ids.begin() + kMostNames}) + " and " + std::to_string(ids.size() - kMostNames) + " more";
}

// Where the merged file goes: as for a run, and never over a part.
std::string output_of(const Typed& typed) {
  if (typed.output.empty()) throw ConfigError("merge: -o FULL.json is missing, the file for all rows");
  for (const std::string& part : typed.parts) {
    std::error_code absent;  // what is not there yet is no part
    if (fs::equivalent(part, typed.output, absent))
      throw ConfigError("merge: " + typed.output + " is one of the parts; give another file with -o");
  }
  try {
    return resolve_output(typed.output);
  } catch (const OutputError& error) {
    throw ConfigError("merge: " + std::string(error.what()));
  }
}

int merge(const Typed& typed) {
  const MergeAllowed allowed = allowed_by(typed.allow);
  const std::string output = output_of(typed);
  std::vector<MergePart> parts;
  for (const std::string& path : typed.parts)
    parts.push_back({.name = fs::path(path).filename().string(), .results = read_results(path)});
  Merged merged;
  try {
    merged = merge_results(parts, allowed);
  } catch (const MergeError& error) {
    throw ConfigError("merge: " + std::string(error.what()));
  } catch (const Json::exception& error) {
    throw ConfigError("merge: a part lacks what results files have: " + std::string(error.what()));
  }
  try {
    write_file_atomically(output, merged.results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  } catch (const std::system_error& error) {
    throw ConfigError("merge: " + std::string(error.what()));
  }
  std::cout << merged.results.at("rows").size() << " rows of " << parts.size() << " parts are in " << typed.output
            << '\n';
  if (merged.missing.empty()) return 0;
  std::cerr << "inferometer: merge: " << merged.missing.size()
            << " rows of the sweep are in no part: " << named(merged.missing) << '\n';
  return kIncomplete;
}

}  // namespace

Command add_merge_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("merge", "Put the parts of a sweep together that ran as shards");
  app->add_option("PART", typed->parts, "Results files (JSON)")->required();
  app->add_option("-o,--output", typed->output, "Results file for all rows")->check(not_empty());
  app->add_option("--allow", typed->allow,
                  "Merge parts that differ in config, binary or devices, or hold duplicates; several with commas")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->footer(
      "Exit codes: 0 all rows are there, 2 wrong use or parts that do not belong together, 3 rows are missing.");
  return {app, [typed](const Arguments&) { return merge(*typed); }};
}

}  // namespace inferometer
