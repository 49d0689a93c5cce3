#include "harness/sweep/expression_lexer.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <system_error>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/expression.hpp"

namespace inferometer {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || is_digit(c); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_number(char c) { return is_name(c) || c == '.'; }

std::size_t length_while(std::string_view text, bool (*holds)(char)) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), holds) - text.begin());
}

constexpr std::array<std::string_view, 16> kSymbols = {"==", "!=", "<=", ">=", "<", ">", "+", "-",
                                                       "*",  "/",  "%",  "(",  ")", "[", "]", ","};

// What other languages write, and what is meant here.
constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kForeign = {
    {{"&&", "and"}, {"||", "or"}, {"!", "not"}, {"=", "=="}, {"<>", "!="}}};

}  // namespace

std::string_view ExpressionLexer::take(std::size_t count) {
  const std::string_view taken = text_.substr(0, count);
  text_.remove_prefix(count);
  column_ += static_cast<std::size_t>(std::count_if(
      taken.begin(), taken.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
  return taken;
}

ExpressionToken ExpressionLexer::next() {
  take(length_while(text_, &is_space));
  ExpressionToken token;
  token.column = column_;
  if (text_.empty()) return token;
  const char first = text_.front();
  if (is_digit(first)) return number(token);
  if (first == '\'' || first == '"') return word(token);
  if (!is_name_start(first)) return symbol(token);
  token.kind = ExpressionToken::Kind::name;
  token.text = take(length_while(text_, &is_name));
  return token;
}

ExpressionToken ExpressionLexer::number(ExpressionToken token) {
  token.text = take(length_while(text_, &is_number));
  const char* const end = token.text.data() + token.text.size();
  const bool integral = token.text.find_first_not_of("0123456789") == std::string_view::npos;
  token.kind = integral ? ExpressionToken::Kind::integer : ExpressionToken::Kind::real;
  const auto read = integral ? std::from_chars(token.text.data(), end, token.integer)
                             : std::from_chars(token.text.data(), end, token.real);
  if (read.ec == std::errc::result_out_of_range)
    throw ExpressionError(token.column, "the number " + in_quotes(token.text) + " is too large");
  if (read.ec != std::errc{} || read.ptr != end)
    throw ExpressionError(token.column, in_quotes(token.text) + " is not a number");
  return token;
}

ExpressionToken ExpressionLexer::word(ExpressionToken token) {
  const std::size_t closing = text_.find(text_.front(), 1);
  if (closing == std::string_view::npos)
    throw ExpressionError(token.column, "the string that starts here does not end");
  token.kind = ExpressionToken::Kind::word;
  token.text = take(closing + 1).substr(1, closing - 1);
  return token;
}

ExpressionToken ExpressionLexer::symbol(ExpressionToken token) {
  token.kind = ExpressionToken::Kind::symbol;
  const auto starts = [this](std::string_view symbol) { return text_.starts_with(symbol); };
  const auto* known = std::find_if(kSymbols.begin(), kSymbols.end(), starts);
  const auto* foreign =
      std::find_if(kForeign.begin(), kForeign.end(), [&](const auto& pair) { return starts(pair.first); });
  if (foreign != kForeign.end() && (known == kSymbols.end() || foreign->first.size() > known->size())) {
    throw ExpressionError(token.column,
                          in_quotes(foreign->first) + " is not known here; write " + in_quotes(foreign->second));
  }
  if (known == kSymbols.end())
    throw ExpressionError(token.column, "unexpected character " + in_quotes(text_.substr(0, 1)));
  token.text = take(known->size());
  return token;
}

}  // namespace inferometer
