// Recursive descent, one function a level of precedence; types are checked as nodes are made.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/expression.hpp"
#include "harness/sweep/expression_checks.hpp"
#include "harness/sweep/expression_lexer.hpp"
#include "harness/sweep/expression_node.hpp"

namespace inferometer {
namespace {

using Node = ExpressionNode;
using NodePtr = std::unique_ptr<Node>;
using Kind = ExpressionKind;
using Type = ExpressionType;
using Token = ExpressionToken;

// What walks the tree recurses, its destructor too: these bound how deep.
constexpr int kMaxDepth = 100;       // of parentheses, `not` and `-`
constexpr int kMaxOperators = 1000;  // a chain of n operators is a tree n deep

constexpr std::string_view kOperand = "a field, a number, a string or '('";

bool is_reserved(std::string_view name) { return name == "and" || name == "or" || name == "not" || name == "in"; }

struct Binary {
  std::string_view symbol;
  Kind kind;
};
constexpr std::array<Binary, 6> kComparisons = {{{"==", Kind::equal},
                                                 {"!=", Kind::not_equal},
                                                 {"<=", Kind::less_equal},
                                                 {">=", Kind::greater_equal},
                                                 {"<", Kind::less},
                                                 {">", Kind::greater}}};
constexpr std::array<Binary, 2> kSums = {{{"+", Kind::add}, {"-", Kind::subtract}}};
constexpr std::array<Binary, 3> kProducts = {{{"*", Kind::multiply}, {"/", Kind::divide}, {"%", Kind::remainder}}};

class Parser {
 public:
  Parser(std::string_view text, const Operator& op, const std::vector<std::string>& variants)
      : lexer_(text), op_(op), variants_(variants) {
    advance();
  }

  NodePtr parse() {
    NodePtr root = disjunction();
    if (token_.kind != Token::Kind::end) unexpected("the end, 'and', 'or' or an operator");
    require_condition(*root, "the whole expression");
    return root;
  }

 private:
  void advance() { token_ = lexer_.next(); }

  bool at_name(std::string_view name) const { return token_.kind == Token::Kind::name && token_.text == name; }
  bool at_symbol(std::string_view symbol) const { return token_.kind == Token::Kind::symbol && token_.text == symbol; }

  template <std::size_t kCount>
  std::optional<Kind> at_any(const std::array<Binary, kCount>& table) const {
    for (const Binary& binary : table)
      if (at_symbol(binary.symbol)) return binary.kind;
    return std::nullopt;
  }

  [[noreturn]] void unexpected(std::string_view wanted) const {
    const std::string came = token_.kind == Token::Kind::end ? "the end" : in_quotes(token_.text);
    throw ExpressionError(token_.column, "expected " + std::string(wanted) + ", got " + came);
  }

  void expect_symbol(std::string_view symbol) {
    if (!at_symbol(symbol)) unexpected(in_quotes(symbol));
    advance();
  }

  NodePtr make(Kind kind, Type type, std::size_t column, NodePtr a, NodePtr b = nullptr) {
    if (++operators_ > kMaxOperators)
      throw ExpressionError(column, "more than " + std::to_string(kMaxOperators) + " operators");
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->type = type;
    node->column = column;
    node->operands.push_back(std::move(a));
    if (b != nullptr) node->operands.push_back(std::move(b));
    return node;
  }

  NodePtr disjunction() {
    NodePtr left = conjunction();
    while (at_name("or")) left = logical(Kind::logical_or, std::move(left), &Parser::conjunction);
    return left;
  }

  NodePtr conjunction() {
    NodePtr left = negation();
    while (at_name("and")) left = logical(Kind::logical_and, std::move(left), &Parser::negation);
    return left;
  }

  NodePtr logical(Kind kind, NodePtr left, NodePtr (Parser::*next)()) {
    const Token symbol = token_;
    advance();
    NodePtr right = (this->*next)();
    for (const Node* side : {left.get(), right.get()})
      require_condition(*side, "each side of " + in_quotes(symbol.text));
    return make(kind, Type::boolean, symbol.column, std::move(left), std::move(right));
  }

  NodePtr negation() {
    if (!at_name("not")) return comparison();
    const std::size_t column = token_.column;
    advance();
    NodePtr operand = nested(&Parser::negation);
    require_condition(*operand, "what follows 'not'");
    return make(Kind::logical_not, Type::boolean, column, std::move(operand));
  }

  NodePtr comparison() {
    NodePtr left = sum();
    const std::size_t column = token_.column;
    if (at_name("in")) return membership(std::move(left));
    if (at_name("not")) {
      advance();
      if (!at_name("in")) unexpected("'in' after 'not'");
      return make(Kind::logical_not, Type::boolean, column, membership(std::move(left)));
    }
    const auto kind = at_any(kComparisons);
    if (!kind) return left;
    const std::string symbol = in_quotes(token_.text);
    advance();
    NodePtr right = sum();
    require_comparable(*left, *right, column);
    const bool ordering = *kind != Kind::equal && *kind != Kind::not_equal;
    if (ordering && !is_number(left->type))
      throw ExpressionError(column, symbol + " compares numbers, not " + std::string(type_text(left->type)));
    if (at_any(kComparisons))
      throw ExpressionError(token_.column, "comparisons do not chain; write 'a < b and b < c', or parentheses");
    return make(*kind, Type::boolean, column, std::move(left), std::move(right));
  }

  NodePtr membership(NodePtr left) {
    const std::size_t column = token_.column;
    advance();
    expect_symbol("[");
    NodePtr node = make(Kind::in, Type::boolean, column, std::move(left));
    do {
      if (!node->operands.empty() && at_symbol(",")) advance();
      NodePtr element = unary();
      if (element->kind != Kind::literal) throw ExpressionError(element->column, "a list holds literals only");
      require_comparable(*node->operands.front(), *element, element->column);
      node->operands.push_back(std::move(element));
    } while (at_symbol(","));
    if (!at_symbol("]")) unexpected("',' or ']'");
    advance();
    return node;
  }

  template <std::size_t kCount>
  NodePtr arithmetic(const std::array<Binary, kCount>& table, NodePtr (Parser::*next)()) {
    NodePtr left = (this->*next)();
    while (const auto kind = at_any(table)) {
      const Token symbol = token_;
      advance();
      NodePtr right = (this->*next)();
      for (const Node* side : {left.get(), right.get()}) {
        if (side->type != Type::integer) {
          throw ExpressionError(side->column, in_quotes(symbol.text) + " works on integers, not on " +
                                                  std::string(type_text(side->type)));
        }
      }
      left = make(*kind, Type::integer, symbol.column, std::move(left), std::move(right));
    }
    return left;
  }

  NodePtr sum() { return arithmetic(kSums, &Parser::product); }
  NodePtr product() { return arithmetic(kProducts, &Parser::unary); }

  NodePtr unary() {
    if (!at_symbol("-")) return primary();
    const std::size_t column = token_.column;
    advance();
    NodePtr operand = nested(&Parser::unary);
    if (!is_number(operand->type))
      throw ExpressionError(column, "'-' works on numbers, not on " + std::string(type_text(operand->type)));
    if (operand->kind == Kind::literal) {
      if (auto* integer = std::get_if<std::int64_t>(&operand->literal)) *integer = -*integer;
      if (auto* real = std::get_if<double>(&operand->literal)) *real = -*real;
      operand->column = column;
      return operand;
    }
    const Type type = operand->type;
    return make(Kind::negate, type, column, std::move(operand));
  }

  NodePtr primary() {
    if (at_symbol("(")) {
      advance();
      NodePtr inner = nested(&Parser::disjunction);
      if (!at_symbol(")")) unexpected("')'");
      advance();
      return inner;
    }
    auto node = std::make_unique<Node>();
    node->column = token_.column;
    switch (token_.kind) {
      case Token::Kind::integer:
        node->type = Type::integer;
        node->literal = token_.integer;
        break;
      case Token::Kind::real:
        node->type = Type::real;
        node->literal = token_.real;
        break;
      case Token::Kind::word:
        node->type = Type::word;
        node->literal = std::string(token_.text);
        break;
      case Token::Kind::name:
        if (at_name("true") || at_name("false")) {
          node->literal = at_name("true");
        } else if (is_reserved(token_.text)) {
          unexpected(kOperand);
        } else {
          resolve_name(*node, token_.text, op_, variants_);
        }
        break;
      default: unexpected(kOperand);
    }
    advance();
    return node;
  }

  // One level deeper in the recursion.
  NodePtr nested(NodePtr (Parser::*next)()) {
    if (depth_ == kMaxDepth)
      throw ExpressionError(token_.column, "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    ++depth_;
    NodePtr node = (this->*next)();
    --depth_;
    return node;
  }

  ExpressionLexer lexer_;
  Token token_;
  const Operator& op_;
  const std::vector<std::string>& variants_;
  int depth_ = 0;
  int operators_ = 0;
};

}  // namespace

NodePtr parse_expression(std::string_view text, const Operator& op, const std::vector<std::string>& variants) {
  return Parser(text, op, variants).parse();
}

}  // namespace inferometer
