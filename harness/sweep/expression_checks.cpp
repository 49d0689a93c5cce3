#include "harness/sweep/expression_checks.hpp"

#include <algorithm>
#include <variant>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/expression.hpp"
#include "harness/sweep/field_names.hpp"

namespace inferometer {
namespace {

bool contains(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require_known_word(const ExpressionNode& name, const ExpressionNode& literal) {
  const auto* word = std::get_if<std::string>(&literal.literal);
  if (name.words.empty() || literal.kind != ExpressionKind::literal || word == nullptr) return;
  if (!contains(name.words, *word)) throw ExpressionError(literal.column, unknown_word(name.name, *word, name.words));
}

}  // namespace

std::string_view type_text(ExpressionType type) {
  switch (type) {
    case ExpressionType::boolean: return "a condition";
    case ExpressionType::integer: return "an integer";
    case ExpressionType::real: return "a number";
    case ExpressionType::word: return "a string";
  }
  return "?";
}

bool is_number(ExpressionType type) { return type == ExpressionType::integer || type == ExpressionType::real; }

void require_condition(const ExpressionNode& node, std::string_view what) {
  if (node.type != ExpressionType::boolean) {
    throw ExpressionError(node.column, std::string(what) + " must be a condition, such as 'batch == 1', but is " +
                                           std::string(type_text(node.type)));
  }
}

void require_comparable(const ExpressionNode& a, const ExpressionNode& b, std::size_t column) {
  if (a.type != b.type && !(is_number(a.type) && is_number(b.type))) {
    throw ExpressionError(
        column, "cannot compare " + std::string(type_text(a.type)) + " with " + std::string(type_text(b.type)));
  }
  require_known_word(a, b);
  require_known_word(b, a);
}

void resolve_name(ExpressionNode& node, std::string_view name, const Operator& op,
                  const std::vector<std::string>& variants) {
  node.name = name;
  if (name == "variant") {
    node.kind = ExpressionKind::variant;
    node.type = ExpressionType::word;
    node.words = variants;
    return;
  }
  node.kind = ExpressionKind::field;
  const std::vector<std::string> targets = targets_of(name, op);
  for (std::size_t i = 0; i < op.fields.size(); ++i)
    if (contains(targets, op.fields[i].name)) node.fields.push_back(i);
  if (node.fields.empty()) {
    std::vector<std::string> known = field_names(op);
    known.emplace_back("variant");
    throw ExpressionError(node.column, unknown_word("field", name, known));
  }
  const FieldInfo& field = op.fields[node.fields.front()];
  if (field.type == "integer list")
    throw ExpressionError(node.column, in_quotes(name) + " is a list, which a condition cannot compare");
  node.type = field.type == "integer"   ? ExpressionType::integer
              : field.type == "number"  ? ExpressionType::real
              : field.type == "boolean" ? ExpressionType::boolean
                                        : ExpressionType::word;
  node.words = field.allowed;
}

}  // namespace inferometer
