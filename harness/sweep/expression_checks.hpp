// What the parts of an Expression may be: types, and the words a name can stand for. All throw ExpressionError.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "harness/sweep/expression_node.hpp"

namespace inferometer {

std::string_view type_text(ExpressionType type);  // "an integer", for messages
bool is_number(ExpressionType type);

// `what` begins the message: "what follows 'not'".
void require_condition(const ExpressionNode& node, std::string_view what);

// Same types, or two numbers; a literal word compared with a name must be one that the name can be.
void require_comparable(const ExpressionNode& a, const ExpressionNode& b, std::size_t column);

// Makes `node`, at node.column, the field, alias or variant called `name`.
void resolve_name(ExpressionNode& node, std::string_view name, const Operator& op,
                  const std::vector<std::string>& variants);

}  // namespace inferometer
