// inferometer claims: published claims judged by results files, or by what this machine can run.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "experiments/command.hpp"
#include "experiments/project.hpp"
#include "experiments/results_input.hpp"
#include "experiments/text_output.hpp"
#include "harness/claims/claims_file.hpp"
#include "harness/claims/claims_report.hpp"
#include "harness/claims/demonstrations.hpp"
#include "harness/measure/gpu_state.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/recorded_command.hpp"
#include "harness/results/terminal.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/run.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kResultsFolder = "inferometer-results/claims";
constexpr std::size_t kFileColumns = 120;  // where nobody's terminal says

struct Typed {
  std::string claims;
  std::vector<std::string> from;
  std::vector<std::string> only;
  std::string output;
  bool json = false;
  bool markdown = false;
  bool brief = false;
  bool demonstrations = false;
  bool quiet = false;
};

void keep_only(std::vector<Claim>& claims, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return;
  std::vector<std::string> known;
  known.reserve(claims.size());
  for (const Claim& claim : claims) known.push_back(claim.id);
  for (const std::string& id : wanted)
    if (std::find(known.begin(), known.end(), id) == known.end())
      throw ConfigError("claims: --only: " + unknown_word("claim", id, known));
  std::erase_if(claims,
                [&](const Claim& claim) { return std::find(wanted.begin(), wanted.end(), claim.id) == wanted.end(); });
}

void check_output(const Typed& typed, const std::string& claims_path) {
  require_replaceable("claims", typed.output);
  std::error_code absent;  // what is not there yet is not the list either
  if (fs::equivalent(typed.output, claims_path, absent))
    throw ConfigError("claims: " + typed.output + " is the list of claims; give another file with -o");
}

struct PlannedRun {
  Sweep sweep;
  RunOptions options;
};

// As the command line `run` would have it, so that each row's `reproduce` repeats it.
Arguments run_line(const std::string& experiment, const SweepOptions& options) {
  Arguments words{"run", experiment};
  std::string variants;
  for (const std::string& variant : options.variants) variants += (variants.empty() ? "" : ",") + variant;
  if (!variants.empty()) words.insert(words.end(), {"--variants", variants});
  if (!options.filter.empty()) words.insert(words.end(), {"--filter", options.filter});
  for (const std::string& set : options.set) words.insert(words.end(), {"--set", set});
  return words;
}

// All sweeps are read before the first one runs. What two claims ask for alike is run once.
std::vector<PlannedRun> planned_runs(const std::vector<Claim>& claims, bool quiet) {
  const bool has_gpu = read_gpu_state(0).has_value();
  const std::string project = project_folder();
  std::vector<PlannedRun> runs;
  std::set<std::string> planned;
  int without_gpu = 0;
  for (const Claim& claim : claims) {
    for (std::size_t i = 0; i < claim.runs.size(); ++i) {
      const ClaimRun& run = claim.runs[i];
      if (run.needs_gpu && !has_gpu) {
        ++without_gpu;
        continue;
      }
      PlannedRun one{.sweep = load_sweep((fs::path(project) / run.experiment).string(), run.options), .options = {}};
      if (!planned.insert(one.sweep.config_sha256).second) continue;
      one.sweep.path = path_in_project(one.sweep.path, project);
      one.options.argv = run_line(run.experiment, run.options);
      one.options.output = (fs::path(kResultsFolder) / (claim.id + "." + std::to_string(i + 1) + ".json")).string();
      one.options.quiet = quiet;
      one.options.print_table = false;
      runs.push_back(std::move(one));
    }
  }
  if (without_gpu > 0 && !quiet)
    std::cerr << "inferometer: there is no GPU here: " << without_gpu << " of the claims' sweeps are not run\n";
  return runs;
}

struct Ran {
  std::vector<std::string> files;
  int exit_code = 0;
};

Ran run_all(const std::vector<Claim>& claims, bool quiet) {
  const std::vector<PlannedRun> runs = planned_runs(claims, quiet);
  std::error_code error;
  fs::create_directories(kResultsFolder, error);
  if (error)
    throw ConfigError("claims: the folder " + std::string(kResultsFolder) + " cannot be made: " + error.message());
  Ran ran;
  for (const auto& [sweep, options] : runs) {
    std::error_code absent;  // an earlier run's file must not stand for this one
    fs::remove(options.output, absent);
    ran.exit_code = std::max(ran.exit_code, run_sweep(sweep, options));
    if (ran.exit_code == kInterrupted) break;
    if (fs::exists(options.output, absent)) ran.files.push_back(options.output);
  }
  return ran;
}

bool is_markdown(const Typed& typed) { return typed.markdown || typed.output.ends_with(".md"); }

std::string report_text(const Typed& typed, const std::vector<JudgedClaim>& judged, const Evidence& evidence) {
  constexpr int kIndent = 1;
  if (typed.json || (typed.output.ends_with(".json") && !typed.markdown))
    return claims_json(judged, evidence).dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
  if (is_markdown(typed)) return typed.brief ? claims_markdown_brief(judged) : claims_markdown(judged, evidence);
  const bool shown = typed.output.empty() && is_terminal(stdout);
  return claims_text(judged, evidence, shown ? static_cast<std::size_t>(terminal_columns(stdout)) : kFileColumns);
}

int show_demonstrations(const Typed& typed) {
  if (typed.json || !typed.from.empty() || !typed.only.empty())
    throw ConfigError("claims: --demonstrations are the same everywhere: they take neither results nor claims, and " +
                      std::string("are written as text or Markdown"));
  put_text("claims", typed.output,
           is_markdown(typed) ? demonstrations_markdown(demonstrations())
                              : demonstrations_text(demonstrations(), kFileColumns));
  return 0;
}

int claims(const Typed& typed) {
  if (typed.json && typed.markdown) throw ConfigError("claims: --json and --markdown: give one of the two");
  if (typed.brief && !is_markdown(typed)) throw ConfigError("claims: --brief shortens the table of --markdown");
  const std::string path =
      typed.claims.empty() ? (fs::path(project_folder()) / "experiments" / "claims.json").string() : typed.claims;
  if (!typed.output.empty()) check_output(typed, path);
  if (typed.demonstrations) return show_demonstrations(typed);
  if (std::error_code unreadable; typed.claims.empty() && !fs::exists(path, unreadable))
    throw ConfigError("claims: the list of claims is not at " + path +
                      ", so this is not the project's folder: start ./inferometer there, or name a list with --claims");
  std::vector<Claim> claims = load_claims(path);
  keep_only(claims, typed.only);
  Ran ran;
  if (typed.from.empty()) {
    ran = run_all(claims, typed.quiet);
    if (ran.exit_code == kInterrupted) return kInterrupted;
  } else {
    ran.files = typed.from;
  }
  std::vector<NamedResults> results;
  for (const std::string& file : ran.files) results.push_back({.path = file, .json = read_results(file)});
  const Evidence evidence(results);
  std::vector<JudgedClaim> judged;
  judged.reserve(claims.size());
  for (const Claim& claim : claims) judged.push_back(judge(claim, evidence));
  put_text("claims", typed.output, report_text(typed, judged, evidence));
  if (typed.from.empty()) std::cerr << failures_text(results) << interruptions_text(results);
  return ran.exit_code;
}

}  // namespace

Command add_claims_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("claims", "Published claims, what was measured, and whether they hold");
  app->add_option("--from", typed->from,
                  "Judge by these results files and run nothing (default: run what this machine can, into\n"
                  "./inferometer-results/claims/)");
  app->add_option("--only", typed->only, "These claims, by their ids with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--claims", typed->claims, "Another list of claims (default: experiments/claims.json)")
      ->check(not_empty());
  app->add_option("-o,--output", typed->output,
                  "Write to this file: JSON or Markdown where its name ends in .json or .md, else text\n"
                  "(default: standard output)")
      ->check(not_empty());
  app->add_flag("--json", typed->json, "Every point, as JSON");
  app->add_flag("--markdown", typed->markdown, "A Markdown table");
  app->add_flag("--brief", typed->brief, "Of the Markdown table, claims, verdicts and the figures that decide");
  app->add_flag("--demonstrations", typed->demonstrations,
                "Errors that articles' algorithms hold, run beside the right ones");
  app->add_flag("--quiet", typed->quiet, "No progress on standard error");
  app->footer(
      "Exit codes: 0 judged, whatever the verdicts; 1 some row that was run failed or is suspect; 2 wrong use;\n"
      "130 interrupted.");
  return {app, [typed](const Arguments&) { return claims(*typed); }};
}

}  // namespace inferometer
