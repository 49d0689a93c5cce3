// One subcommand of the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace inferometer {

// What was typed, without the program's name.
using Arguments = std::vector<std::string>;

struct Command {
  CLI::App* app = nullptr;
  std::function<int(const Arguments&)> run;  // returns the exit code; called after `app` has parsed
};

Command add_run_command(CLI::App& program);
Command add_profile_command(CLI::App& program);
Command add_list_command(CLI::App& program);
Command add_report_command(CLI::App& program);
Command add_compare_command(CLI::App& program);
Command add_quantize_command(CLI::App& program);
Command add_doctor_command(CLI::App& program);
Command add_merge_command(CLI::App& program);
Command add_export_command(CLI::App& program);
Command add_claims_command(CLI::App& program);

// Refuses '' where it would mean the same as no option at all.
CLI::Validator not_empty();

// What was typed after the --seed of `command`. Throws ConfigError.
std::uint64_t seed_from(const std::string& command, const std::string& typed);

// The sentence for what CLI11 refused: unknown options with the nearest known one.
std::string command_line_error(const CLI::App& program, const CLI::ParseError& error);

}  // namespace inferometer
