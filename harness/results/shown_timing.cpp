#include "harness/results/shown_timing.hpp"

#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {

bool is_warm_in_cold_sweep(const Timing& timing) {
  return timing.isolated.cache == CacheMode::cold && headline_cache(timing) == CacheMode::warm;
}

std::string shown_flags(const Record& record) {
  if (!record.timing) return {};
  const IsolatedTiming& timing = record.timing->isolated;
  std::string text;
  const auto add = [&](const std::string& note) { text += (text.empty() ? "" : ", ") + note; };
  for (const std::string& flag : timing.flags) {
    const bool few = flag == "few_samples";
    add(few ? std::to_string(timing.samples) + (timing.samples == 1 ? " sample" : " samples") : flag);
  }
  if (const auto& profiler = record.timing->profiler) add("profiler " + shown_time(profiler->median_ns));
  if (!record.timing->profiler_absent.empty()) add("no profiler: " + record.timing->profiler_absent);
  return text;
}

std::string shown_status(const Record& record) {
  const std::string status(status_name(record.status));
  const std::string flags = shown_flags(record);
  return flags.empty() ? status : status + " (" + flags + ")";
}

std::string shown_ceiling(const Record& record) {
  if (!record.timing) return {};
  if (!record.rates || !record.rates->fraction_of_ceiling)
    return headline_cache(*record.timing) == CacheMode::warm ? "warm cache" : "";  // memory is no bound then
  const std::string share = formatted("%.0f %% ", 100 * *record.rates->fraction_of_ceiling) + record.rates->limit;
  return is_warm_in_cold_sweep(*record.timing) ? share + ", warm" : share;
}

}  // namespace inferometer
