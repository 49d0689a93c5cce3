#include "harness/sweep/measure_settings.hpp"

#include <cstdint>
#include <limits>
#include <optional>

namespace inferometer {
namespace {

constexpr std::int64_t kMaxSamples = 1'000'000;
constexpr double kMaxSeconds = 7 * 24 * 3600.0;
constexpr double kMaxRestSeconds = 10;

CacheMode read_cache(const Cursor& value) {
  const std::string mode = value.string();
  if (mode == "cold") return CacheMode::cold;
  if (mode == "warm") return CacheMode::warm;
  value.refuse("cold or warm");
}

std::optional<std::size_t> read_bytes(const Cursor& value) {
  if (value.is_null()) return std::nullopt;
  return static_cast<std::size_t>(value.integer(0, std::numeric_limits<std::int64_t>::max()));
}

double read_rest(const Cursor& value) {
  const double seconds = value.json().is_number() ? value.json().get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kMaxRestSeconds)) value.refuse("a number from 0 to " + Json(kMaxRestSeconds).dump());
  return seconds;
}

int read_samples(const Cursor& value) { return static_cast<int>(value.integer(1, kMaxSamples)); }

bool read_flag(const Cursor& value) {
  if (!value.json().is_boolean()) value.refuse("true or false");
  return value.json().get<bool>();
}

struct MeasureKey {
  const char* name;
  void (*set)(MeasureConfig&, const Cursor&);
};

constexpr MeasureKey kMeasureKeys[] = {
    {"cache", [](MeasureConfig& m, const Cursor& v) { m.cache = read_cache(v); }},
    {"min_samples", [](MeasureConfig& m, const Cursor& v) { m.min_samples = read_samples(v); }},
    {"max_samples", [](MeasureConfig& m, const Cursor& v) { m.max_samples = read_samples(v); }},
    {"max_seconds", [](MeasureConfig& m, const Cursor& v) { m.max_seconds = v.number_above(0, kMaxSeconds); }},
    {"relative_ci", [](MeasureConfig& m, const Cursor& v) { m.relative_ci = v.number_above(0, 1); }},
    {"rest_seconds", [](MeasureConfig& m, const Cursor& v) { m.rest_seconds = read_rest(v); }},
    {"kernel_times", [](MeasureConfig& m, const Cursor& v) { m.kernel_times = read_flag(v); }},
};

struct LimitKey {
  const char* name;
  void (*set)(Limits&, const Cursor&);
};

constexpr LimitKey kLimitKeys[] = {
    {"row_seconds", [](Limits& l, const Cursor& v) { l.row_seconds = v.number_above(0, kMaxSeconds); }},
    {"host_bytes", [](Limits& l, const Cursor& v) { l.host_bytes = read_bytes(v); }},
    {"device_bytes", [](Limits& l, const Cursor& v) { l.device_bytes = read_bytes(v); }},
};

}  // namespace

std::vector<std::string> measure_keys() {
  std::vector<std::string> names;
  for (const MeasureKey& key : kMeasureKeys) names.emplace_back(key.name);
  return names;
}

std::vector<std::string> limit_keys() {
  std::vector<std::string> names;
  for (const LimitKey& key : kLimitKeys) names.emplace_back(key.name);
  return names;
}

void set_measure(MeasureConfig& measure, const std::string& key, const Cursor& value) {
  for (const MeasureKey& known : kMeasureKeys)
    if (key == known.name) known.set(measure, value);
}

void set_limit(Limits& limits, const std::string& key, const Cursor& value) {
  for (const LimitKey& known : kLimitKeys)
    if (key == known.name) known.set(limits, value);
}

void check_measure(const MeasureConfig& measure, const std::string& place) {
  if (measure.min_samples > measure.max_samples) {
    throw ConfigError(place + ": measure.min_samples (" + std::to_string(measure.min_samples) +
                      ") must not exceed measure.max_samples (" + std::to_string(measure.max_samples) + ")");
  }
}

}  // namespace inferometer
