#include "harness/results/row_commands.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace inferometer {
namespace {

constexpr std::string_view kRun = "./inferometer run ";

struct Option {
  std::string_view name;
  bool changes_row;  // what a row measures; the others choose rows and files
};

// Options of `run` with a value, which is no option whatever it looks like.
constexpr std::array<Option, 8> kOptionsWithValue{{{"--set", true},
                                                   {"--seed", true},
                                                   {"--variants", true},
                                                   {"--device", true},
                                                   {"--filter", false},
                                                   {"--row", false},
                                                   {"--output", false},
                                                   {"-o", false}}};
constexpr std::string_view kQuick = "--quick";

}  // namespace

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string reproduce_line(const std::string& config_path, const std::string& row_id,
                           const std::vector<std::string>& argv) {
  std::string line = std::string(kRun) + shell_quoted(config_path) + " --row " + row_id;
  for (std::size_t i = 0; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    const std::string name = word.substr(0, word.find('='));
    if (name == kQuick) line += " " + word;
    const auto option = std::find_if(kOptionsWithValue.begin(), kOptionsWithValue.end(),
                                     [&](const Option& known) { return known.name == name; });
    if (option == kOptionsWithValue.end()) continue;
    const bool next_is_value = word.size() <= name.size() + 1 && i + 1 < argv.size();  // "--seed 7", "--seed= 7"
    if (option->changes_row) line += " " + shell_quoted(word) + (next_is_value ? " " + shell_quoted(argv[i + 1]) : "");
    if (next_is_value) ++i;
  }
  return line;
}

std::string profile_line(const std::string& reproduce) {
  if (!reproduce.starts_with(kRun)) return {};
  return "./inferometer profile " + reproduce.substr(kRun.size()) + " --tool nsys";
}

}  // namespace inferometer
