#include "experiments/text_output.hpp"

#include <iostream>
#include <system_error>

#include "harness/results/file_write.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

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
