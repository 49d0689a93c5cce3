// The names by which a config or a condition may speak of an operator's fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"

namespace inferometer {

// The fields that `name` sets: those of an alias, a field itself; empty for an unknown name.
std::vector<std::string> targets_of(std::string_view name, const Operator& op);

// Fields, then aliases.
std::vector<std::string> field_names(const Operator& op);

std::vector<std::string> variant_names(const Operator& op);

}  // namespace inferometer
