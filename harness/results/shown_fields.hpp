// What a table says of the problems of its rows: a column for each field that varies, the others once above it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/results/json.hpp"

namespace inferometer {

struct ShownFields {
  std::vector<std::string> varying;  // the rows' values differ, or only some rows have the field
  std::vector<std::string> fixed;
};

// Each field once, in the operator's order. A field that has the operator's default in all rows is shown only where
// `config`, the config of the sweep, names it: what nobody asked about is no part of the question. Nor then, if the
// field says that its default goes without saying.
ShownFields shown_fields(const Json& config, std::string_view operator_name, const std::vector<const Fields*>& rows);

// Null when there is no such field.
const Value* field_in(const Fields& fields, std::string_view name);

// A value in a cell or a line: of a list of more than six the first three and the last, and how many there are:
// "[104, 146, 188, ..., 1400] (32)". Two such lists can look the same; the results file has them whole.
std::string short_text(const Value& value);

}  // namespace inferometer
