// The tree of an Expression: made by expression_parser.cpp, evaluated by expression.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "harness/operator/operator.hpp"

namespace inferometer {

enum class ExpressionType : std::uint8_t { boolean, integer, real, word };

enum class ExpressionKind : std::uint8_t {
  literal,
  field,    // one field, or those of an alias
  variant,  // the row's variant
  negate,
  logical_not,
  logical_and,
  logical_or,
  add,
  subtract,
  multiply,
  divide,
  remainder,
  equal,
  not_equal,
  less,
  less_equal,
  greater,
  greater_equal,
  in,  // the first operand equals one of the others
};

struct ExpressionNode {
  ExpressionKind kind = ExpressionKind::literal;
  ExpressionType type = ExpressionType::boolean;
  std::size_t column = 0;
  std::variant<bool, std::int64_t, double, std::string> literal = false;
  std::string name;                 // field: as written
  std::vector<std::size_t> fields;  // field: indices into the problem
  std::vector<std::string> words;   // field of words, variant: all it can be; empty: unknown
  std::vector<std::unique_ptr<ExpressionNode>> operands;
};

std::unique_ptr<ExpressionNode> parse_expression(std::string_view text, const Operator& op,
                                                 const std::vector<std::string>& variants);

}  // namespace inferometer
