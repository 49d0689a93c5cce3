#include "harness/results/shown_fields.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <variant>

#include "harness/operator/registry.hpp"

namespace inferometer {
namespace {

// Fields that the config gives, by themselves or by an alias.
std::set<std::string, std::less<>> named_fields(const Json& config, const Operator& op) {
  std::set<std::string, std::less<>> names;
  const auto add_keys = [&](const Json& group) {
    if (!group.is_object()) return;
    for (const auto& [name, values] : group.items()) names.insert(name);
  };
  if (!config.is_object()) return names;
  for (const char* key : {"fixed", "axes"})
    if (const auto group = config.find(key); group != config.end()) add_keys(*group);
  if (const auto groups = config.find("zip"); groups != config.end())
    for (const Json& group : *groups) add_keys(group);
  for (const FieldAlias& alias : op.aliases)
    if (names.contains(alias.name)) names.insert(alias.targets.begin(), alias.targets.end());
  return names;
}

// Fields of which a value is worth no word while it is the default.
Fields unnamed_defaults(const Json& config, std::string_view operator_name) {
  const Operator* op = find_operator(operator_name);
  if (op == nullptr) return {};
  const auto named = named_fields(config, *op);
  Fields defaults;
  for (const FieldInfo& field : op->fields)
    if (field.default_unsaid || !named.contains(field.name)) defaults.emplace_back(field.name, field.default_value);
  return defaults;
}

bool same(const Value* a, const Value* b) { return a == b || (a != nullptr && b != nullptr && *a == *b); }

}  // namespace

ShownFields shown_fields(const Json& config, std::string_view operator_name, const std::vector<const Fields*>& rows) {
  std::vector<std::string> names;  // a few, whatever the number of rows
  for (const Fields* row : rows)
    for (const auto& [name, value] : *row)
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  const Fields defaults = unnamed_defaults(config, operator_name);
  ShownFields shown;
  for (const std::string& name : names) {
    const Value* first = field_in(*rows.front(), name);
    const bool varies =
        std::any_of(rows.begin(), rows.end(), [&](const Fields* row) { return !same(field_in(*row, name), first); });
    if (varies) {
      shown.varying.push_back(name);
    } else if (!same(field_in(defaults, name), first)) {
      shown.fixed.push_back(name);
    }
  }
  return shown;
}

const Value* field_in(const Fields& fields, std::string_view name) {
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const auto& field) { return field.first == name; });
  return found == fields.end() ? nullptr : &found->second;
}

std::string short_text(const Value& value) {
  constexpr std::size_t kLongest = 6;
  constexpr std::size_t kFirst = 3;
  const auto* const list = std::get_if<std::vector<std::int64_t>>(&value);
  if (list == nullptr || list->size() <= kLongest) return to_string(value);
  std::string text = "[";
  for (std::size_t i = 0; i < kFirst; ++i) text += std::to_string((*list)[i]) + ", ";
  return text + "..., " + std::to_string(list->back()) + "] (" + std::to_string(list->size()) + ")";
}

}  // namespace inferometer
