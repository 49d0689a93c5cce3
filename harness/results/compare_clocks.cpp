#include "harness/results/compare_clocks.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

bool at_power_limit(const Timing& timing) {
  const std::vector<std::string>& flags = timing.isolated.flags;
  return std::find(flags.begin(), flags.end(), "power_limited") != flags.end();
}

// New over base: the time that a kernel bound by the SM clock would take.
std::optional<double> clock_ratio(const Timing& base, const Timing& now) {
  const auto& before = base.isolated.sm_mhz_median;
  const auto& after = now.isolated.sm_mhz_median;
  if (!before || !after || !(*before > 0) || !(*after > 0)) return std::nullopt;
  return *before / *after;
}

std::optional<double> ratio_in_a_row(const Timing& base, const Timing& now) {
  if (!base.amortized || !now.amortized || base.amortized->cache != now.amortized->cache) return std::nullopt;
  if (!(base.amortized->mean_ns > 0) || !(now.amortized->mean_ns > 0)) return std::nullopt;
  return now.amortized->mean_ns / base.amortized->mean_ns;
}

}  // namespace

std::string clock_doubt(const Timing& base, const Timing& now, double ratio_low, double ratio_high, double threshold) {
  const double limit = 1 + threshold;
  const bool slower = ratio_low > limit;
  if (!slower && ratio_high >= 1 / limit) return {};
  // Below, what is above 1 is of the same direction as the difference.
  const auto directed = [&](double ratio) { return slower ? ratio : 1 / ratio; };
  const double least = directed(slower ? ratio_low : ratio_high);
  const auto clocks = clock_ratio(base, now);
  const auto in_a_row = ratio_in_a_row(base, now);
  const bool explained = clocks && least <= directed(*clocks) * limit;
  const bool limited = at_power_limit(base) || at_power_limit(now);
  if (!explained && !(limited && in_a_row)) return {};
  if (in_a_row && directed(*in_a_row) > limit) return {};
  std::string text = "at the power limit";
  if (explained)
    text = "clocks of " + formatted("%.0f", *base.isolated.sm_mhz_median) + " and " +
           formatted("%.0f MHz", *now.isolated.sm_mhz_median);
  return text + (in_a_row ? ", in a row " + formatted("%.3f", *in_a_row) : ", not measured in a row");
}

}  // namespace inferometer
