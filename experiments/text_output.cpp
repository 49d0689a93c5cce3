#include "experiments/text_output.hpp"

#include <filesystem>
#include <iostream>
#include <system_error>

#include "harness/results/file_write.hpp"
#include "harness/results/results_file.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

void require_replaceable(const std::string& command, const std::string& path) {
  std::error_code absent;  // what is not there yet is in nobody's way
  const std::filesystem::file_status status = std::filesystem::status(path, absent);
  if (!std::filesystem::exists(status)) return;
  const auto refuse = [&](const char* what) {
    throw ConfigError(command + ": " + path + " is " + what + "; give another file with -o");
  };
  if (!std::filesystem::is_regular_file(status)) refuse("no regular file");
  if (rows_in_results_file(path)) refuse("a results file");
}

void put_text(const std::string& command, const std::string& path, const std::string& text) {
  if (path.empty()) {
    std::cout << text;
    return;
  }
  try {
    write_file_atomically(path, text);
  } catch (const std::system_error& error) {
    throw ConfigError(command + ": " + error.what());
  }
}

}  // namespace inferometer
