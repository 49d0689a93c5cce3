#include "harness/results/shown_provenance.hpp"

namespace inferometer {

std::string day_of(const std::string& time) {
  constexpr std::size_t kDigits = 10;
  return time.substr(0, kDigits);
}

std::string shown_commit(const Json& program) {
  constexpr std::size_t kDigits = 10;
  std::string text = program.at("git_commit").get<std::string>().substr(0, kDigits);
  if (program.at("git_dirty").get<bool>()) text += " with changes";
  return text;
}

}  // namespace inferometer
