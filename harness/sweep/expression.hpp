// Conditions over rows: "seq_len <= 4096 or variant in ['cuda.paged'] and not causal".
//
//   or, and, not                 on conditions, in rising precedence
//   == != < <= > >=  in, not in  compare numbers; == != also words and conditions; `x in [1, 2]` a list of literals
//   + - * / %                    on integers, / rounds toward zero; a field that is a number can only be compared
//   names                        the operator's fields, its aliases, and `variant`
//   128  2.5  'f16'  "f16"  true false  ( )
//
// Types are checked when it is read, and so are words: dtype == 'fp16' is an error, not a condition that never holds.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "harness/operator/fields.hpp"
#include "harness/operator/operator.hpp"

namespace inferometer {

// what(): "column 9: <sentence>", columns counted from 1.
class ExpressionError : public std::runtime_error {
 public:
  ExpressionError(std::size_t column, const std::string& sentence)
      : std::runtime_error("column " + std::to_string(column) + ": " + sentence) {}
};

struct ExpressionNode;

class Expression {
 public:
  // Throws ExpressionError for what is not a condition over this operator's rows.
  Expression(std::string_view text, const Operator& op, const std::vector<std::string>& variants);

  // `problem`: every field of the operator, in its order. Throws ExpressionError for a division by zero, an overflow,
  // and an alias whose fields differ.
  bool holds(const Fields& problem, std::string_view variant) const;

  bool uses_variant() const;

 private:
  std::shared_ptr<const ExpressionNode> root_;
};

}  // namespace inferometer
