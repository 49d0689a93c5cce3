// inferometer profile: one row under Nsight Systems or Nsight Compute.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "experiments/command.hpp"
#include "experiments/results_input.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/results/file_write.hpp"
#include "harness/results/metrics.hpp"
#include "harness/results/row_commands.hpp"
#include "harness/results/status.hpp"
#include "harness/run/ncu_counters.hpp"
#include "harness/run/profile.hpp"
#include "harness/sweep/json_reader.hpp"

namespace inferometer {
namespace {

namespace fs = std::filesystem;

struct Typed {
  std::string config;
  std::string tool;
  std::string output;
  std::string collect;  // results file
  std::string seed = std::to_string(ProfileOptions{}.seed);
  SweepOptions sweep;
  ProfileOptions profile;
  bool print = false;
};

constexpr const char* kDefaultFolder = "inferometer-results";

// The words that run the row without a tool: those typed, less the ones that choose and steer the tool.
std::vector<std::string> own_words(const Typed& typed) {
  std::vector<std::string> words{fs::read_symlink("/proc/self/exe").string(), "profile", typed.config};
  words.insert(words.end(), {"--row", typed.sweep.row, "--launches", std::to_string(typed.profile.launches)});
  words.insert(words.end(), {"--seed", std::to_string(typed.profile.seed)});
  words.insert(words.end(), {"--device", std::to_string(typed.profile.device)});
  for (const std::string& assignment : typed.sweep.set) words.insert(words.end(), {"--set", assignment});
  for (const std::string& variant : typed.sweep.variants) words.insert(words.end(), {"--variants", variant});
  if (typed.sweep.quick) words.emplace_back("--quick");
  return words;
}

std::string line_of(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + shell_quoted(word);
  return line;
}

// As exec and spawn take them; they write none.
std::vector<char*> pointers_to(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

[[noreturn]] void refuse_start(const std::vector<std::string>& words, int error) {
  const std::string why =
      error == ENOENT || error == EACCES  // EACCES: also of a folder on PATH, of another user
          ? " is not on PATH, or may not be executed; it comes with the CUDA Toolkit (nsight-systems, nsight-compute)"
          : " cannot be started: " + std::generic_category().message(error);
  throw ConfigError("profile: " + words.front() + why + "; the command is: " + line_of(words));
}

// Becomes the tool; returns only by throwing.
[[noreturn]] void become(const std::vector<std::string>& words) {
  execvp(words.front().c_str(), pointers_to(words).data());
  refuse_start(words, errno);
}

int exit_code_of(const std::vector<std::string>& words) {
  setenv("LC_ALL", "C", 1);  // NOLINT(concurrency-mt-unsafe): no other thread; numbers are to have a decimal point
  pid_t tool = 0;
  const int error = posix_spawnp(&tool, words.front().c_str(), nullptr, nullptr, pointers_to(words).data(), environ);
  if (error != 0) refuse_start(words, error);
  int status = 0;
  while (waitpid(tool, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}

void make_folder_of(const std::string& report) {
  std::error_code error;
  if (const fs::path folder = fs::path(report).parent_path(); !folder.empty()) fs::create_directories(folder, error);
  if (error) throw ConfigError("profile: the folder of " + report + " cannot be made: " + error.message());
}

int run_row(const Sweep& sweep, const Typed& typed) {
  const Record record = profile_row(sweep, typed.profile);
  std::cout << record.operator_name << '/' << record.variant << '/' << record.id << ": " << status_name(record.status);
  if (!record.reason.empty()) std::cout << ": " << record.reason;
  if (record.status == Status::ok)
    std::cout << ", launched " << typed.profile.launches << " times in the range measure";
  std::cout << '\n';
  return is_success(record.status) ? 0 : 1;
}

std::vector<KernelCounters> count_kernels(const std::vector<std::string>& words, const std::string& log) {
  constexpr std::size_t kMostLogBytes = std::size_t{1} << 28;
  fs::remove(log);  // that of an earlier time says nothing of this one
  std::cerr << "inferometer: " << line_of(words) << '\n';
  const int exit_code = exit_code_of(words);
  const std::string text = fs::exists(log) ? read_text_file(log, kMostLogBytes, "log of ncu") : "";
  if (const std::string complaint = ncu_complaint(text); !complaint.empty())
    throw std::runtime_error("profile: " + complaint);
  if (exit_code != 0)
    throw std::runtime_error("profile: ncu ended with exit code " + std::to_string(exit_code) + "; its log is " + log);
  return read_ncu_log(text);
}

int collect(const Typed& typed, const SweepRow& row, const std::vector<std::string>& words, const std::string& log) {
  Json results = read_results(typed.collect);
  row_for_counters(results, row.id, typed.collect);  // before time is spent
  const std::vector<KernelCounters> kernels = count_kernels(words, log);
  const std::vector<Metric> metrics = counter_metrics(kernels, typed.profile.launches);
  results = read_results(typed.collect);  // another command may have written it meanwhile
  Json& counted = row_for_counters(results, row.id, typed.collect);
  require_same_sm(results, kernels);
  set_metrics(counted, metrics);
  write_file_atomically(typed.collect, results.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
  for (const Metric& metric : metrics)
    std::cout << metric.name << ' ' << shown_metric(metric.name, metric.value) << '\n';
  return 0;
}

int profile(const Typed& typed) {
  if (typed.sweep.row.empty()) throw ConfigError("profile: --row is required; 'run CONFIG --dry-run' lists ids");
  const Sweep sweep = load_sweep(typed.config, typed.sweep);
  if (typed.tool.empty()) {
    if (typed.print) throw ConfigError("profile: --print prints a tool's command: add --tool nsys or --tool ncu");
    if (!typed.collect.empty()) throw ConfigError("profile: --collect takes counters from ncu: add --tool ncu");
    return run_row(sweep, typed);
  }
  const auto tool = parse_profile_tool(typed.tool);
  if (!tool) throw ConfigError("profile: " + unknown_word("tool", typed.tool, {"nsys", "ncu"}));
  const bool collects = !typed.collect.empty();
  if (collects && *tool != ProfileTool::ncu)
    throw ConfigError("profile: --collect takes counters from --tool ncu alone");
  const SweepRow& row = sweep.rows.front();
  const std::string report =
      typed.output.empty() ? (fs::path(kDefaultFolder) / (sweep.name + "." + row.id)).string() : typed.output;
  const std::string log = report + ".ncu.csv";
  const std::vector<std::string> words = collects ? counting_command(row, sweep.measure.cache, log, own_words(typed))
                                                  : tool_command(*tool, row, report, own_words(typed));
  if (typed.print) {
    std::cout << line_of(words) << '\n';
    return 0;
  }
  make_folder_of(report);
  if (collects) return collect(typed, row, words, log);
  std::cerr << "inferometer: " << line_of(words) << '\n';
  become(words);
}

}  // namespace

Command add_profile_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand(
      "profile",
      "One row under nsys or ncu. Without --tool the row runs by itself, as the tools see it: few launches,\n"
      "in this process, inside the NVTX range `measure` of the domain `inferometer`");
  app->add_option("CONFIG", typed->config, "Sweep config (JSON)")->required();
  app->add_option("--row", typed->sweep.row,
                  "The row's id, or how it alone begins (run CONFIG --dry-run lists them); required")
      ->check(not_empty());
  app->add_option("--tool", typed->tool, "nsys or ncu")->check(not_empty());
  app->add_flag("--print", typed->print, "Print the tool's command instead of running it");
  app->add_option("-o,--output", typed->output,
                  "The tool's report, without suffix (default: ./inferometer-results/NAME.ID)")
      ->check(not_empty());
  app->add_option("--collect", typed->collect,
                  "Add what ncu counts to the row in this results file: time, DRAM bytes, tensor pipe, occupancy")
      ->check(not_empty());
  app->add_option("--launches", typed->profile.launches, "In the measured phase (default: 5)")
      ->check(CLI::Range(1, 1000000));
  app->add_option("--set", typed->sweep.set, "As for run")->allow_extra_args(false);
  app->add_option("--variants", typed->sweep.variants, "As for run")->delimiter(',')->allow_extra_args(false);
  app->add_flag("--quick", typed->sweep.quick, "As for run");
  app->add_option("--seed", typed->seed, "Seed of all inputs (default: 1)");
  app->add_option("--device", typed->profile.device, "GPU, by its ordinal (default: 0)")->check(CLI::Range(0, 1023));
  return {app, [typed](const Arguments&) {
            typed->profile.seed = seed_from("profile", typed->seed);
            return profile(*typed);
          }};
}

}  // namespace inferometer
