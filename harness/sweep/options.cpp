// What the command line changes in a config.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/config.hpp"
#include "harness/sweep/dimensions.hpp"
#include "harness/sweep/field_names.hpp"
#include "harness/sweep/measure_settings.hpp"

namespace inferometer {
namespace {

// --quick: an answer in seconds, whose error bars are wide.
constexpr int kQuickMinSamples = 10;
constexpr int kQuickMaxSamples = 100;
constexpr double kQuickMaxSeconds = 0.2;
constexpr double kQuickRelativeCi = 0.02;

void keep_ends(Dimension& dimension) {
  for (Setting& setting : dimension.settings)
    if (setting.values.size() > 2) setting.values = {setting.values.front(), setting.values.back()};
}

void make_quick(SweepConfig& config) {
  for (Dimension& dimension : config.dimensions) keep_ends(dimension);
  config.measure.min_samples = kQuickMinSamples;
  config.measure.max_samples = kQuickMaxSamples;
  config.measure.max_seconds = kQuickMaxSeconds;
  config.measure.relative_ci = kQuickRelativeCi;
}

struct Assignment {
  std::string place;  // "--set seq_len=512"
  std::string key;
  Json value;  // JSON, or a bare word as a string
};

Assignment read_assignment(const std::string& text) {
  Assignment assignment{.place = "--set " + printable(text), .key = {}, .value = {}};
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw ConfigError(assignment.place + ": must be KEY=VALUE");
  assignment.key = text.substr(0, equals);
  const std::string value = text.substr(equals + 1);
  const bool word = !Json::accept(value) && value.find_first_of("[]{}\"") == std::string::npos;
  assignment.value = word ? Json(value) : read_json(value, assignment.place);
  return assignment;
}

// A list makes an axis, except for a field that is a list itself: there a list of lists does.
bool is_axis(const Json& value, const std::string& name, const Operator& op) {
  if (!value.is_array()) return false;
  const auto field =
      std::find_if(op.fields.begin(), op.fields.end(), [&](const FieldInfo& f) { return f.name == name; });
  const bool takes_lists = field != op.fields.end() && field->type == "integer list";
  return !takes_lists || (!value.empty() && value.front().is_array());
}

void set_field(SweepConfig& config, const std::string& name, const Cursor& value) {
  Setting setting{
      .name = name, .place = value.place(), .is_list = is_axis(value.json(), name, *config.op), .values = {}};
  if (setting.is_list)
    setting.values = axis_values(value);
  else
    setting.values.push_back(value.value());
  replace_dimension(config.dimensions, {{std::move(setting)}}, *config.op);
}

void apply_set(SweepConfig& config, const std::string& text) {
  const Assignment assignment = read_assignment(text);
  const Cursor value(assignment.place, assignment.value);
  const auto under = [&](const std::string& section,
                         const std::vector<std::string>& keys) -> std::optional<std::string> {
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return assignment.key == section + k; });
    return key != keys.end() ? std::optional(*key) : std::nullopt;
  };
  if (const auto key = under("measure.", measure_keys())) return set_measure(config.measure, *key, value);
  if (const auto key = under("limits.", limit_keys())) return set_limit(config.limits, *key, value);
  if (targets_of(assignment.key, *config.op).empty()) {
    std::vector<std::string> known = field_names(*config.op);
    for (const std::string& key : measure_keys()) known.push_back("measure." + key);
    for (const std::string& key : limit_keys()) known.push_back("limits." + key);
    value.fail(unknown_word("key", assignment.key, known));
  }
  set_field(config, assignment.key, value);
}

// The options become part of JSON files, which hold UTF-8 only.
void require_utf8(const std::string& option, const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
  } catch (const Json::type_error&) {
    throw ConfigError(option + ": must be UTF-8, got other bytes");
  }
}

}  // namespace

void apply_options(SweepConfig& config, const SweepOptions& options) {
  for (const std::string& text : options.set) require_utf8("--set", text);
  for (const std::string& text : options.variants) require_utf8("--variants", text);
  require_utf8("--filter", options.filter);
  if (options.quick) make_quick(config);
  for (const std::string& text : options.set) apply_set(config, text);
  check_measure(config.measure, "--set");
  if (!options.variants.empty()) {
    const std::vector<Json> patterns(options.variants.begin(), options.variants.end());
    std::vector<Cursor> cursors;
    cursors.reserve(patterns.size());
    for (const Json& pattern : patterns) cursors.emplace_back("--variants", pattern);
    config.variants = match_variants(*config.op, cursors);
  }
  if (options.filter.empty()) return;
  try {
    config.conditions.push_back(
        {.place = "--filter", .expression = Expression(options.filter, *config.op, variant_names(*config.op))});
  } catch (const ExpressionError& error) {
    throw ConfigError("--filter: " + std::string(error.what()));
  }
}

}  // namespace inferometer
