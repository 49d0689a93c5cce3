#include "harness/sweep/config.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/dimensions.hpp"
#include "harness/sweep/field_names.hpp"
#include "harness/sweep/glob.hpp"
#include "harness/sweep/measure_settings.hpp"

namespace inferometer {
namespace {

constexpr const char* kSchema = "inferometer.sweep/1";
constexpr std::size_t kMaxNameLength = 100;

// It names files, so it is kept to characters that are safe there.
std::string read_name(const Cursor& value) {
  std::string name = value.string();
  const bool safe = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
  if (!safe || name.empty() || name.front() == '.' || name.size() > kMaxNameLength)
    value.refuse("1 to " + std::to_string(kMaxNameLength) + " of a-z, A-Z, 0-9, '_', '-' and '.', no '.' first");
  return name;
}

void require_field(const Cursor& place, const std::string& name, const Operator& op) {
  if (targets_of(name, op).empty()) place.fail(unknown_word("field", name, field_names(op)));
}

Setting read_fixed(const std::string& name, const Cursor& value, const Operator& op) {
  require_field(value, name, op);
  return {.name = name, .place = value.place(), .is_list = false, .values = {value.value()}};
}

Setting read_axis(const std::string& name, const Cursor& array, const Operator& op) {
  require_field(array, name, op);
  return {.name = name, .place = array.place(), .is_list = true, .values = axis_values(array)};
}

// Unlike those of an axis, values of a group may repeat: the rows differ in another field.
Setting read_group_values(const std::string& name, const Cursor& array, const Operator& op) {
  require_field(array, name, op);
  Setting setting{.name = name, .place = array.place(), .is_list = true, .values = {}};
  for (const Cursor& item : array.items(1)) setting.values.push_back(item.value());
  return setting;
}

Dimension read_group(const Cursor& object, const Operator& op) {
  Dimension group;
  for (const auto& [name, values] : object.members()) {
    group.settings.push_back(read_group_values(name, values, op));
    const Setting& first = group.settings.front();
    const Setting& last = group.settings.back();
    if (last.values.size() != group.size()) {
      values.fail("has " + std::to_string(last.values.size()) + " values, but '" + first.name +
                  "' of the same group has " + std::to_string(group.size()));
    }
  }
  if (group.settings.empty()) object.fail("a zip group must name at least one field");
  return group;
}

void read_dimensions(const Cursor& root, SweepConfig& config) {
  const Operator& op = *config.op;
  if (const auto fixed = root.find("fixed")) {
    for (const auto& [name, value] : fixed->members())
      add_dimension(config.dimensions, {{read_fixed(name, value, op)}}, op);
  }
  if (const auto axes = root.find("axes")) {
    for (const auto& [name, value] : axes->members())
      add_dimension(config.dimensions, {{read_axis(name, value, op)}}, op);
  }
  const auto zip = root.find("zip");
  if (!zip) return;
  std::vector<Dimension> groups;  // first among themselves: only fixed fields and axes give way to a group
  for (const Cursor& object : zip->items(0)) add_dimension(groups, read_group(object, op), op);
  for (Dimension& group : groups) replace_dimension(config.dimensions, std::move(group), op);
}

Baseline read_baseline(const Cursor& value, const SweepConfig& config) {
  Baseline baseline{.place = value.place(), .variant = {}, .replaced = {}};
  Cursor variant = value;
  if (value.json().is_object()) {
    value.allow_keys({"variant", "problem"});
    variant = value.required("variant");
    if (const auto problem = value.find("problem")) {
      for (const auto& [name, field] : problem->members()) {
        require_field(field, name, *config.op);
        for (const std::string& target : targets_of(name, *config.op))
          baseline.replaced.emplace_back(target, field.value());
      }
    }
  } else if (!value.json().is_string()) {
    value.refuse("a variant, or an object with 'variant' and 'problem'");
  }
  baseline.variant = variant.string();
  if (std::find(config.variants.begin(), config.variants.end(), baseline.variant) == config.variants.end())
    variant.fail(unknown_word("variant of this sweep", baseline.variant, config.variants));
  return baseline;
}

}  // namespace

const Operator* read_operator(const Cursor& value) {
  const std::string name = value.string();
  if (const Operator* op = find_operator(name)) return op;
  std::vector<std::string> known;
  for (const Operator* op : all_operators()) known.push_back(op->name);
  value.fail(unknown_word("operator", name, known));
}

std::vector<Value> axis_values(const Cursor& array) {
  std::vector<Value> values;
  std::set<Value> taken;
  for (const Cursor& item : array.items(1)) {
    values.push_back(item.value());
    if (!taken.insert(values.back()).second) item.fail("the value " + to_string(values.back()) + " is given twice");
  }
  return values;
}

Condition read_condition(const Cursor& value, const Operator& op) {
  try {
    return {.place = value.place(), .expression = Expression(value.string(), op, variant_names(op))};
  } catch (const ExpressionError& error) {
    value.fail(error.what());
  }
}

std::vector<std::string> match_variants(const Operator& op, const std::vector<Cursor>& patterns) {
  const std::vector<std::string> known = variant_names(op);
  std::vector<std::string> chosen;
  for (const Cursor& pattern : patterns) {
    const std::string text = pattern.string();
    bool matched = false;
    for (const std::string& name : known) {
      if (!glob_matches(text, name)) continue;
      matched = true;
      if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) chosen.push_back(name);
    }
    if (matched) continue;
    if (is_glob(text))
      pattern.fail("no variant of " + op.name + " matches " + in_quotes(text) + "; there are: " + joined(known));
    pattern.fail(unknown_word("variant of " + op.name, text, known));
  }
  return chosen;
}

SweepConfig read_config(const Cursor& root, const std::string& path) {
  root.allow_keys({"schema", "name", "question", "operator", "variants", "baseline", "fixed", "axes", "zip", "where",
                   "measure", "limits"});
  if (const Cursor schema = root.required("schema"); schema.string() != kSchema)
    schema.refuse("'" + std::string(kSchema) + "'");
  SweepConfig config;
  config.path = path;
  config.name = read_name(root.required("name"));
  if (const auto question = root.find("question")) config.question = question->string();
  config.op = read_operator(root.required("operator"));
  config.variants = match_variants(*config.op, root.required("variants").items(1));
  if (const auto baseline = root.find("baseline"); baseline && !baseline->is_null())
    config.baseline = read_baseline(*baseline, config);
  read_dimensions(root, config);
  if (const auto where = root.find("where"))
    for (const Cursor& condition : where->items(0)) config.conditions.push_back(read_condition(condition, *config.op));
  if (const auto measure = root.find("measure")) {
    measure->allow_keys(measure_keys());
    for (const auto& [key, value] : measure->members()) set_measure(config.measure, key, value);
    check_measure(config.measure, measure->place());
  }
  if (const auto limits = root.find("limits")) {
    limits->allow_keys(limit_keys());
    for (const auto& [key, value] : limits->members()) set_limit(config.limits, key, value);
  }
  return config;
}

}  // namespace inferometer
