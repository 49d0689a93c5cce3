#include "harness/results/summary.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>

#include "harness/measure/statistics.hpp"

namespace inferometer {
namespace {

std::string baseline_variant(const Json& config) {
  const auto baseline = config.find("baseline");
  if (baseline == config.end() || baseline->is_null()) return "";
  return text_from(baseline->is_string() ? *baseline : baseline->at("variant"));
}

std::string times(double ratio) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2fx", ratio);
  return text.data();
}

}  // namespace

std::vector<std::string> summary_lines(const Json& results) {
  const std::string baseline = baseline_variant(results.at("config"));
  std::map<std::string, std::vector<double>> speedups;  // by variant
  for (const Json& row : results.at("rows")) {
    const std::string variant = text_from(row.at("variant"));
    if (variant != baseline && row.at("speedup").is_number()) speedups[variant].push_back(row.at("speedup"));
  }
  std::vector<std::string> lines;
  for (auto& [variant, ratios] : speedups) {
    std::sort(ratios.begin(), ratios.end());
    lines.push_back(variant + ": " + times(ratios.front()) + " to " + times(ratios.back()) + " as fast as " + baseline +
                    ", median " + times(median(ratios)) + ", over " + std::to_string(ratios.size()) + " problems");
  }
  return lines;
}

}  // namespace inferometer
