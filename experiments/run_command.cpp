// inferometer run: reads all configs before the first row runs, so that a mistake in the last one costs no time.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "experiments/command.hpp"
#include "experiments/dry_run.hpp"
#include "experiments/project.hpp"
#include "experiments/results_input.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/recorded_command.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/run.hpp"
#include "harness/sweep/shard.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultFolder =
    "inferometer-results";  // in the current folder: published results stay as they are

struct Typed {
  std::vector<std::string> configs;
  std::string output;
  std::string seed = std::to_string(RunOptions{}.seed);
  std::string shard;
  std::string against;
  std::string threshold;  // empty: that of Against
  SweepOptions sweep;
  RunOptions run;
  bool dry_run = false;
  bool json = false;
};

bool names_folder(const std::string& path) {
  std::error_code ignored;  // a path that cannot be looked at is no folder; writing to it will say why
  return path.ends_with('/') || fs::is_directory(path, ignored);
}

// The results file of each sweep.
std::vector<std::string> output_paths(const std::vector<Sweep>& sweeps, const Typed& typed) {
  const std::string& output = typed.output;
  if (!output.empty() && !names_folder(output)) {
    if (sweeps.size() > 1)
      throw ConfigError("run: several configs need a folder for their results: -o " + output + "/");
    return {output};
  }
  const fs::path folder = output.empty() ? fs::path(kDefaultFolder) : fs::path(output);
  std::vector<std::string> paths;
  std::set<std::string> taken;
  for (const Sweep& sweep : sweeps) {
    if (!taken.insert(sweep.name).second) {
      throw ConfigError(sweep.path + ": /name: another config of this call is called '" + sweep.name +
                        "' too, and would write the same file");
    }
    // A single row, or a shard, must not take the place of the whole sweep it came from.
    std::string name = typed.sweep.row.empty() ? sweep.name : sweep.name + "." + sweep.rows.front().id;
    if (sweep.shard)
      name += ".shard-" + std::to_string(sweep.shard->index) + "-of-" + std::to_string(sweep.shard->count);
    paths.push_back((folder / (name + ".json")).string());
  }
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw ConfigError("run: the folder " + folder.string() + " cannot be made: " + error.message());
  return paths;
}

// A profiler that was attached for one row must not be there when the next one is timed.
void require_workers(const std::vector<Sweep>& sweeps) {
  for (const Sweep& sweep : sweeps)
    if (sweep.measure.kernel_times)
      throw ConfigError("run: measure.kernel_times of " + sweep.path +
                        " attaches a profiler to the process of a row, and the next row needs another one: leave out "
                        "--in-process");
}

// A run writes its results file and, beside it, the journal: neither may be what was asked to be run.
void spare_configs(const std::vector<std::string>& configs, const std::vector<std::string>& outputs) {
  for (const std::string& output : outputs) {
    for (const std::string& written : {output, output + "l"}) {
      for (const std::string& config : configs) {
        std::error_code absent;  // what is not there yet is no config
        if (fs::equivalent(written, config, absent)) {
          std::string sentence = "run: " + written;
          sentence.append(" would overwrite the config ").append(config).append("; give another file with -o");
          throw ConfigError(sentence);
        }
      }
    }
  }
}

// Experiments are files: `run kv_policies` learns which one.
void find_config(const std::string& path) {
  std::error_code error;
  if (fs::exists(path, error)) return;
  const fs::path folder = fs::path(project_folder()) / "experiments";
  std::vector<std::string> names;
  for (const std::string& experiment : experiment_paths(error)) names.push_back(fs::path(experiment).stem().string());
  const std::string nearest = nearest_word(fs::path(path).stem().string(), names);
  if (nearest.empty()) return;  // reading it will say what is wrong
  throw ConfigError("run: there is no file " + in_quotes(path) + "; the nearest experiment is " +
                    path_in_project((folder / (nearest + ".json")).lexically_normal().string(), "."));
}

// What an earlier run measured outlives the one that is set against it.
void spare_base(const std::string& base, const std::vector<std::string>& outputs) {
  std::error_code absent;  // what is not there yet is no base
  if (!base.empty() && fs::equivalent(outputs.front(), base, absent))
    throw ConfigError("run: " + outputs.front() + " would overwrite the results to compare with, --against " + base +
                      "; give another file with -o");
}

Against read_against(const Typed& typed) {
  Against against{.path = typed.against, .base = read_results(typed.against)};
  if (!typed.threshold.empty()) against.threshold = ratio_from("run", typed.threshold);
  try {
    require_results(against.base);
  } catch (const std::runtime_error& error) {
    throw ConfigError("run: --against " + typed.against + ": " + error.what());
  }
  return against;
}

int run(const Typed& typed, const Arguments& arguments) {
  if (typed.configs.empty())
    throw ConfigError("run: a config is missing; 'inferometer list experiments' names those at hand");
  if (typed.json && !typed.dry_run)
    throw ConfigError("run: --json belongs to --dry-run; a run writes its JSON to -o FILE");
  if (typed.run.in_process && typed.run.devices.size() > 1)
    throw ConfigError("run: --in-process runs on one device, --devices names " +
                      std::to_string(typed.run.devices.size()));
  if (!typed.threshold.empty() && typed.against.empty())
    throw ConfigError("run: --threshold belongs to --against BASE.json, which is missing");
  if (!typed.shard.empty() && !typed.sweep.row.empty())
    throw ConfigError("run: --shard deals out the rows of a sweep, --row keeps one of them: give one of the two");
  if (!typed.against.empty() && (typed.run.resume || typed.run.devices.size() > 1 || typed.configs.size() > 1))
    throw ConfigError(
        "run: --against measures rows in turn with their counterparts, on one device and in one go: it takes one "
        "config, "
        "no --resume and no --devices");
  RunOptions options = typed.run;
  if (!typed.against.empty()) options.against = read_against(typed);
  const std::string project = project_folder();
  options.argv = recorded_command(arguments, typed.configs, typed.output, project);
  options.seed = seed_from("run", typed.seed);
  std::vector<Sweep> sweeps;
  for (const std::string& path : typed.configs) {
    find_config(path);
    sweeps.push_back(load_sweep(path, typed.sweep));
    if (!typed.shard.empty()) keep_shard(sweeps.back(), parse_shard(typed.shard));
  }
  if (typed.run.in_process) require_workers(sweeps);
  if (typed.dry_run) {
    print_rows(sweeps, typed.json);
    return 0;
  }
  const std::vector<std::string> outputs = output_paths(sweeps, typed);
  spare_configs(typed.configs, outputs);
  spare_base(typed.against, outputs);
  int worst = 0;
  for (std::size_t i = 0; i < sweeps.size(); ++i) {
    options.output = outputs[i];
    sweeps[i].path = path_in_project(sweeps[i].path, project);  // as `reproduce` gives it
    worst = std::max(worst, run_sweep(sweeps[i], options));
    if (worst == kInterrupted) break;
  }
  return worst;
}

}  // namespace

std::uint64_t seed_from(const std::string& command, const std::string& typed) {
  std::uint64_t seed = 0;
  const char* const end = typed.data() + typed.size();
  if (const auto [stop, error] = std::from_chars(typed.data(), end, seed); error != std::errc() || stop != end)
    throw ConfigError(command + ": --seed must be a decimal integer from 0 to 18446744073709551615, got " +
                      in_quotes(typed));
  return seed;
}

Command add_run_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("run", "Check and time the rows of sweep configs");
  app->add_option("CONFIG", typed->configs, "Sweep configs (JSON), each with its own results file");
  app->add_option("-o,--output", typed->output,
                  "Results file, or a folder for NAME.json of each config, NAME.ID.json with --row\n(default: "
                  "./inferometer-results/)")
      ->check(not_empty());
  app->add_option("--filter", typed->sweep.filter, "Only rows for which this holds: \"seq_len >= 1024 and not causal\"")
      ->check(not_empty());
  // One value an option, so that a config may follow it.
  app->add_option("--set", typed->sweep.set,
                  "KEY=VALUE: a field (a JSON list makes an axis), measure.KEY or limits.KEY")
      ->allow_extra_args(false);
  app->add_option("--variants", typed->sweep.variants, "Instead of the config's: names or globs, with commas between")
      ->delimiter(',')
      ->allow_extra_args(false);
  app->add_option("--row", typed->sweep.row, "Only the row with this id, or whose id alone begins so")
      ->check(not_empty());
  app->add_flag("--quick", typed->sweep.quick, "First and last value of each axis, wider error bars");
  app->add_flag("--resume", typed->run.resume, "Go on where an interrupted run of the same config stopped");
  app->add_flag("--dry-run", typed->dry_run, "Print the rows and run nothing");
  app->add_flag("--json", typed->json, "With --dry-run: print the rows as JSON");
  app->add_flag("--in-process", typed->run.in_process, "No worker process: for debuggers and profilers");
  app->add_option("--seed", typed->seed, "Seed of all inputs (default: 1)");
  app->add_option("--shard", typed->shard, "I/N: part I of N of the rows; 'merge' puts the parts together")
      ->check(not_empty());
  app->add_option("--against", typed->against,
                  "BASE.json: compare with these results; variants that only they hold are measured again, in turn")
      ->check(not_empty());
  app->add_option("--threshold", typed->threshold,
                  "With --against: changes up to this much do not count, 5% or 0.05 (default: 5%)")
      ->check(not_empty());
  CLI::Option* device =
      app->add_option("--device", typed->run.device, "GPU, by its ordinal (default: 0)")->check(CLI::Range(0, 1023));
  app->add_option("--devices", typed->run.devices, "Several GPUs with commas between, a worker for each: 0,1")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0, 1023))
      ->excludes(device);
  app->add_flag("--quiet", typed->run.quiet, "No progress on standard error");
  app->footer(
      "./inferometer run builds first, with CUDA where there are a toolkit and a GPU; INFEROMETER_CUDA=off builds\n"
      "without, on insists.");
  return {app, [typed](const Arguments& arguments) { return run(*typed, arguments); }};
}

}  // namespace inferometer
