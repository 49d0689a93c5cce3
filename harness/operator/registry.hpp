// All operators and variants of this program, filled before main by the Register* objects of each source file.
#pragma once

#include <string_view>
#include <vector>

#include "harness/operator/operator.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

// Sorted by name.
std::vector<const Operator*> all_operators();
std::vector<const Variant*> variants_of(std::string_view operator_name);

const Operator* find_operator(std::string_view name);  // nullptr when there is none
const Variant* find_variant(std::string_view operator_name, std::string_view name);

}  // namespace inferometer
