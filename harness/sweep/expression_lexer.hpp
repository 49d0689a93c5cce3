// Expression text -> tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace inferometer {

struct ExpressionToken {
  enum class Kind : std::uint8_t { end, name, integer, real, word, symbol };
  Kind kind = Kind::end;
  std::string_view text;   // a word without its quotes
  std::size_t column = 1;  // from 1, in characters
  std::int64_t integer = 0;
  double real = 0;
};

class ExpressionLexer {
 public:
  explicit ExpressionLexer(std::string_view text) : text_(text) {}
  ExpressionToken next();  // throws ExpressionError; after the last token, `end` for ever

 private:
  ExpressionToken number(ExpressionToken token);
  ExpressionToken word(ExpressionToken token);
  ExpressionToken symbol(ExpressionToken token);
  std::string_view take(std::size_t count);

  std::string_view text_;  // what is left
  std::size_t column_ = 1;
};

}  // namespace inferometer
