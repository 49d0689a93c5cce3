#include "harness/sweep/expression.hpp"

#include <algorithm>
#include <compare>
#include <cstdint>
#include <type_traits>
#include <variant>

#include "harness/sweep/expression_node.hpp"

namespace inferometer {
namespace {

using Kind = ExpressionKind;
using Scalar = std::variant<bool, std::int64_t, double, std::string_view>;

struct Row {
  const Fields& problem;
  std::string_view variant;
};

// Types were checked by the parser; words and numbers never meet here.
std::partial_ordering compare(const Scalar& a, const Scalar& b) {
  if (a.index() == b.index()) {
    return std::visit(
        [&b](const auto& left) -> std::partial_ordering {
          return left <=> std::get<std::remove_cvref_t<decltype(left)>>(b);
        },
        a);
  }
  const auto real = [](const Scalar& s) {
    return std::holds_alternative<double>(s) ? std::get<double>(s) : static_cast<double>(std::get<std::int64_t>(s));
  };
  return real(a) <=> real(b);
}

std::int64_t calculate(const ExpressionNode& node, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  switch (node.kind) {
    case Kind::add: overflow = __builtin_add_overflow(a, b, &result); break;
    case Kind::subtract: overflow = __builtin_sub_overflow(a, b, &result); break;
    case Kind::multiply: overflow = __builtin_mul_overflow(a, b, &result); break;
    default:
      if (b == 0) throw ExpressionError(node.column, "division by zero");
      if (b == -1) {  // apart, since the least integer over -1 does not fit, and traps
        overflow = node.kind == Kind::divide && __builtin_sub_overflow(std::int64_t{0}, a, &result);
      } else {
        result = node.kind == Kind::divide ? a / b : a % b;
      }
  }
  if (overflow) throw ExpressionError(node.column, "the result passes 64 bits");
  return result;
}

Scalar as_scalar(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean;
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::string_view(std::get<std::string>(value));
}

Scalar field_value(const ExpressionNode& node, const Fields& problem) {
  const Value& first = problem[node.fields.front()].second;
  for (const std::size_t field : node.fields) {
    if (problem[field].second != first) {
      throw ExpressionError(node.column,
                            "'" + node.name + "' stands for fields that differ here: " + to_string(problem));
    }
  }
  return as_scalar(first);
}

Scalar evaluate(const ExpressionNode& node, const Row& row) {
  const auto operand = [&](std::size_t i) { return evaluate(*node.operands[i], row); };
  const auto condition = [&](std::size_t i) { return std::get<bool>(operand(i)); };
  switch (node.kind) {
    case Kind::literal:
      return std::visit(
          [](const auto& literal) -> Scalar {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(literal)>, std::string>) {
              return std::string_view(literal);
            } else {
              return literal;
            }
          },
          node.literal);
    case Kind::field: return field_value(node, row.problem);
    case Kind::variant: return row.variant;
    case Kind::negate: {
      const Scalar value = operand(0);
      if (const auto* real = std::get_if<double>(&value)) return -*real;
      std::int64_t negated = 0;
      if (__builtin_sub_overflow(std::int64_t{0}, std::get<std::int64_t>(value), &negated))
        throw ExpressionError(node.column, "the result passes 64 bits");
      return negated;
    }
    case Kind::logical_not: return !condition(0);
    case Kind::logical_and: return condition(0) && condition(1);
    case Kind::logical_or: return condition(0) || condition(1);
    case Kind::equal: return std::is_eq(compare(operand(0), operand(1)));
    case Kind::not_equal: return std::is_neq(compare(operand(0), operand(1)));
    case Kind::less: return std::is_lt(compare(operand(0), operand(1)));
    case Kind::less_equal: return std::is_lteq(compare(operand(0), operand(1)));
    case Kind::greater: return std::is_gt(compare(operand(0), operand(1)));
    case Kind::greater_equal: return std::is_gteq(compare(operand(0), operand(1)));
    case Kind::in: {
      const Scalar value = operand(0);
      for (std::size_t i = 1; i < node.operands.size(); ++i)
        if (std::is_eq(compare(value, operand(i)))) return true;
      return false;
    }
    default: return calculate(node, std::get<std::int64_t>(operand(0)), std::get<std::int64_t>(operand(1)));
  }
}

bool mentions_variant(const ExpressionNode& node) {
  return node.kind == Kind::variant || std::any_of(node.operands.begin(), node.operands.end(),
                                                   [](const auto& operand) { return mentions_variant(*operand); });
}

}  // namespace

Expression::Expression(std::string_view text, const Operator& op, const std::vector<std::string>& variants)
    : root_(parse_expression(text, op, variants)) {}

bool Expression::holds(const Fields& problem, std::string_view variant) const {
  return std::get<bool>(evaluate(*root_, {problem, variant}));
}

bool Expression::uses_variant() const { return mentions_variant(*root_); }

}  // namespace inferometer
