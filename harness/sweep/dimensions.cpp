#include "harness/sweep/dimensions.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "harness/sweep/field_names.hpp"

namespace inferometer {
namespace {

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void refuse_clash(const Setting& first, const Setting& second, const Operator& op) {
  const std::vector<std::string> taken = targets_of(first.name, op);
  for (const std::string& field : targets_of(second.name, op)) {
    if (contains(taken, field))
      throw ConfigError(second.place + ": the field '" + field + "' is given twice, also by " + first.place);
  }
}

// Whether `by` sets every field that `old` sets.
bool covers(const Dimension& by, const Setting& old, const Operator& op) {
  std::vector<std::string> set;
  for (const Setting& setting : by.settings)
    for (std::string& field : targets_of(setting.name, op)) set.push_back(std::move(field));
  const std::vector<std::string> fields = targets_of(old.name, op);
  return std::all_of(fields.begin(), fields.end(), [&](const std::string& field) { return contains(set, field); });
}

void insert_at(std::vector<Dimension>& dimensions, std::size_t position, Dimension added, const Operator& op) {
  for (std::size_t i = 0; i < added.settings.size(); ++i) {
    for (const Dimension& other : dimensions)
      for (const Setting& setting : other.settings) refuse_clash(setting, added.settings[i], op);
    for (std::size_t j = 0; j < i; ++j) refuse_clash(added.settings[j], added.settings[i], op);
  }
  dimensions.insert(dimensions.begin() + static_cast<std::ptrdiff_t>(position), std::move(added));
}

}  // namespace

void add_dimension(std::vector<Dimension>& dimensions, Dimension added, const Operator& op) {
  insert_at(dimensions, dimensions.size(), std::move(added), op);
}

void replace_dimension(std::vector<Dimension>& dimensions, Dimension added, const Operator& op) {
  std::vector<Dimension> kept;
  std::optional<std::size_t> position;
  for (Dimension& dimension : dimensions) {
    std::erase_if(dimension.settings, [&](const Setting& setting) { return covers(added, setting, op); });
    if (!dimension.settings.empty()) {
      kept.push_back(std::move(dimension));
    } else if (!position) {
      position = kept.size();
    }
  }
  dimensions = std::move(kept);
  insert_at(dimensions, position.value_or(dimensions.size()), std::move(added), op);
}

}  // namespace inferometer
