#include "harness/sweep/field_names.hpp"

#include <algorithm>

#include "harness/operator/registry.hpp"

namespace inferometer {

std::vector<std::string> targets_of(std::string_view name, const Operator& op) {
  for (const FieldAlias& alias : op.aliases)
    if (alias.name == name) return {alias.targets.begin(), alias.targets.end()};
  const bool known = std::any_of(op.fields.begin(), op.fields.end(), [name](const auto& f) { return f.name == name; });
  return known ? std::vector<std::string>{std::string(name)} : std::vector<std::string>{};
}

std::vector<std::string> field_names(const Operator& op) {
  std::vector<std::string> names;
  for (const FieldInfo& field : op.fields) names.push_back(field.name);
  for (const FieldAlias& alias : op.aliases) names.emplace_back(alias.name);
  return names;
}

std::vector<std::string> variant_names(const Operator& op) {
  std::vector<std::string> names;
  for (const Variant* variant : variants_of(op.name)) names.push_back(variant->name);
  return names;
}

}  // namespace inferometer
