// The command line: `inferometer COMMAND ...`. Exit code 2 for wrong use; else what the command says.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/command.hpp"
#include "experiments/project.hpp"
#include "harness/operator/nearest_word.hpp"
#include "harness/peer/peer_registry.hpp"
#include "harness/results/build_info.hpp"
#include "harness/results/json_error_words.hpp"
#include "harness/run/exit_code.hpp"
#include "harness/run/worker.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

constexpr int kFailed = 1;

int complain(const std::string& sentence, int exit_code) {
  std::cerr << "inferometer: " << without_json_tags(sentence) << '\n';
  return exit_code;
}

int run_command_line(const Arguments& arguments) {
  CLI::App program("Measures what each LLM-inference optimisation is worth on this machine.", "inferometer");
  program.footer(
      "./inferometer test builds and runs the tests.\n"
      "INFEROMETER_CUDA=off ./inferometer ... builds without CUDA, on insists on it; auto, the default, builds it\n"
      "where there are a toolkit and a GPU, for test where there is a toolkit.");
  program.set_version_flag("--version", build_info().version + " (" + build_info().git_commit + ")");
  const std::vector<Command> commands{add_run_command(program),      add_profile_command(program),
                                      add_list_command(program),     add_report_command(program),
                                      add_compare_command(program),  add_export_command(program),
                                      add_merge_command(program),    add_doctor_command(program),
                                      add_quantize_command(program), add_claims_command(program)};
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const Command& command : commands) names.push_back(command.app->get_name());

  if (arguments.empty()) return complain("a command is missing: " + joined(names) + "; --help says more", kWrongUse);
  const std::string& first = arguments.front();
  if (!first.starts_with("-") && std::find(names.begin(), names.end(), first) == names.end())
    return complain(unknown_word("command", first, names), kWrongUse);
  try {
    program.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes words from the end
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return program.exit(error);  // --help and --version
    return complain(command_line_error(program, error), kWrongUse);
  }
  for (const Command& command : commands)
    if (command.app->parsed()) return command.run(arguments);
  return complain("a command is missing: " + joined(names) + "; --help says more", kWrongUse);
}

// A standard stream that the caller closed leads nowhere from here on: else the next file or socket opened would take
// its number, and be written what was meant for the stream.
void open_closed_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) std::abort();  // open takes the least free number
}

// Output that did not arrive, on a full disk for one, is no success.
int flushed(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  return complain("standard output could not be written; what it lacks is lost", exit_code == 0 ? kFailed : exit_code);
}

}  // namespace
}  // namespace inferometer

int main(int argc, char** argv) {
  using namespace inferometer;
  open_closed_streams();
  try {
    register_peers(project_folder() + "/experiments/peers");
  } catch (const std::exception& error) {
    return complain(error.what(), kWrongUse);
  }
  if (argc > 1 && std::string_view(argv[1]) == "worker") return worker_main(argc, argv);
  try {
    return flushed(run_command_line({argv + 1, argv + argc}));
  } catch (const ConfigError& error) {
    return complain(error.what(), kWrongUse);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
