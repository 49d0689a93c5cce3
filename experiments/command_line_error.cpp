#include "experiments/command.hpp"
#include "harness/operator/nearest_word.hpp"

namespace inferometer {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

CLI::Validator not_empty() {
  return {[](const std::string& value) { return std::string(value.empty() ? "must not be empty" : ""); }, ""};
}

std::string command_line_error(const CLI::App& program, const CLI::ParseError& error) {
  const CLI::App* app = &program;
  std::string begin;
  if (const auto chosen = program.get_subcommands(); !chosen.empty()) {
    app = chosen.front();
    begin = app->get_name() + ": ";
  }
  // An unknown option is told of first: what else is missing may be its consequence.
  for (const std::string& word : app->remaining()) {
    if (word.starts_with("-"))
      return begin + unknown_word("option", word.substr(0, word.find('=')), option_names(*app));
    return begin + "unexpected argument " + in_quotes(word);
  }
  return begin + error.what();
}

}  // namespace inferometer
