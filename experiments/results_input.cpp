#include "experiments/results_input.hpp"

#include <cmath>
#include <cstddef>
#include <stdexcept>

#include "harness/results/terminal.hpp"
#include "harness/sweep/json_reader.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

Json read_results(const std::string& path) {
  constexpr std::size_t kMaxResultsBytes = std::size_t{1} << 30;
  return read_json(read_text_file(path, kMaxResultsBytes, "results file"), path);
}

double ratio_from(const std::string& command, const std::string& typed) {
  std::size_t used = 0;
  double value = -1;
  try {
    value = std::stod(typed, &used);
  } catch (const std::logic_error&) {
    used = 0;  // no number, or none that a double holds: refused below
  }
  const bool percent = used + 1 == typed.size() && typed.back() == '%';
  if (used == 0 || (used != typed.size() && !percent) || !std::isfinite(value) || value < 0)
    throw ConfigError(command + ": --threshold must be a ratio or a percentage, like 5% or 0.05, got '" + typed + "'");
  // Who types 5 means five percent; as a ratio it would let a row take six times as long.
  if (!percent && value >= 1)
    throw ConfigError(command + ": --threshold " + typed + " would be " + formatted("%g %%", 100 * value) + ": write " +
                      typed + "% for a percentage, or a ratio below 1 like 0.05");
  return percent ? value / 100 : value;
}

}  // namespace inferometer
