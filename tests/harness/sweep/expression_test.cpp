// The condition language: values, precedence, and the column of each mistake.
#include "harness/sweep/expression.hpp"

#include <string>

#include "harness/operator/registry.hpp"
#include "harness/sweep/field_names.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const Operator& prefill() { return *find_operator("attention_prefill"); }

Fields problem() {
  return prefill().describe(prefill()
                                .parse({{"batch", std::int64_t{4}},
                                        {"q_heads", std::int64_t{8}},
                                        {"kv_heads", std::int64_t{2}},
                                        {"seq_len", std::int64_t{100}},
                                        {"causal", true}})
                                .get());
}

bool holds(const std::string& text) {
  return Expression(text, prefill(), variant_names(prefill())).holds(problem(), "cpu.flash");
}

std::string refusal(const std::string& text) {
  try {
    return holds(text) ? "true" : "false";
  } catch (const ExpressionError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("expression: comparisons of numbers, words and conditions", "[sweep][expression]") {
  for (const char* text : {"batch == 4",
                           "batch != 5",
                           "batch < 5",
                           "batch <= 4",
                           "batch > 3",
                           "batch >= 4",
                           "batch < 4.5",
                           "4.5 > batch",
                           "batch == 4.0",
                           "batch > -1",
                           "-batch == -4",
                           "dtype == 'f16'",
                           "dtype != \"bf16\"",
                           "variant == 'cpu.flash'",
                           "causal",
                           "causal == true",
                           "causal != false",
                           "seq_len == 100",
                           "(batch == 4) == (kv_heads == 2)",
                           "true",
                           "batch in [1, 2, 4]",
                           "batch not in [1, 2]",
                           "dtype in ['f16', 'bf16']",
                           "batch in [-4, 4.0]",
                           "not not causal",
                           "not variant in ['cpu.naive']",
                           "causal in [true]"}) {
    INFO(text);
    CHECK(holds(text));
    CHECK_FALSE(holds("not (" + std::string(text) + ")"));
  }
}

TEST_CASE("expression: arithmetic on integers binds as usual", "[sweep][expression]") {
  for (const char* text :
       {"2 + 3 * 4 == 14", "(2 + 3) * 4 == 20", "10 - 3 - 2 == 5", "100 / 7 / 2 == 7", "7 / 2 == 3", "-7 / 2 == -3",
        "-7 % 2 == -1", "seq_len % 32 == 4", "batch * seq_len == 400", "q_heads / kv_heads == 4", "- (1 + 2) == -3",
        "--1 == 1", "2 - -1 == 3", "9223372036854775807 % -1 == 0"}) {
    INFO(text);
    CHECK(holds(text));
  }
}

TEST_CASE("expression: and binds tighter than or, not tighter than both", "[sweep][expression]") {
  CHECK(holds("true or false and false"));
  CHECK_FALSE(holds("(true or false) and false"));
  CHECK(holds("not false and true"));
  CHECK_FALSE(holds("not (false or true)"));
  CHECK(holds("not batch == 5 and causal"));
}

TEST_CASE("expression: what is decided already is not evaluated", "[sweep][expression]") {
  CHECK_FALSE(holds("batch != 4 and 1 / (batch - 4) > 0"));
  CHECK(holds("batch == 4 or 1 / (batch - 4) > 0"));
}

TEST_CASE("expression: mistakes name their column", "[sweep][expression]") {
  CHECK(refusal("") == "column 1: expected a field, a number, a string or '(', got the end");
  CHECK(refusal("batch ==") == "column 9: expected a field, a number, a string or '(', got the end");
  CHECK(refusal("batch == 4 causal") == "column 12: expected the end, 'and', 'or' or an operator, got 'causal'");
  CHECK(refusal("(batch == 4") == "column 12: expected ')', got the end");
  CHECK(refusal("batch in 4") == "column 10: expected '[', got '4'");
  CHECK(refusal("batch in [4") == "column 12: expected ',' or ']', got the end");
  CHECK(refusal("batch in []") == "column 11: expected a field, a number, a string or '(', got ']'");
  CHECK(refusal("batch in [1,]") == "column 13: expected a field, a number, a string or '(', got ']'");
  CHECK(refusal("batch in [q_len]") == "column 11: a list holds literals only");
  CHECK(refusal("batch not 4") == "column 11: expected 'in' after 'not', got '4'");
  CHECK(refusal("and") == "column 1: expected a field, a number, a string or '(', got 'and'");
  CHECK(refusal("1 < batch < 5") == "column 11: comparisons do not chain; write 'a < b and b < c', or parentheses");
  CHECK(refusal("dtype == 'f16") == "column 10: the string that starts here does not end");
  CHECK(refusal("batch == 4x") == "column 10: '4x' is not a number");
  CHECK(refusal("batch == 1.2.3") == "column 10: '1.2.3' is not a number");
  CHECK(refusal("batch == 9223372036854775808") == "column 10: the number '9223372036854775808' is too large");
  CHECK(refusal("batch # 4") == "column 7: unexpected character '#'");
}

TEST_CASE("expression: operators of other languages are translated", "[sweep][expression]") {
  CHECK(refusal("batch = 4") == "column 7: '=' is not known here; write '=='");
  CHECK(refusal("causal && true") == "column 8: '&&' is not known here; write 'and'");
  CHECK(refusal("causal || true") == "column 8: '||' is not known here; write 'or'");
  CHECK(refusal("!causal") == "column 1: '!' is not known here; write 'not'");
  CHECK(refusal("batch <> 4") == "column 7: '<>' is not known here; write '!='");
}

TEST_CASE("expression: unknown names and words name the nearest", "[sweep][expression]") {
  CHECK(
      refusal("causal and bacth == 4").starts_with("column 12: unknown field 'bacth', nearest is 'batch'; allowed: "));
  CHECK(refusal("varaint == 'x'").starts_with("column 1: unknown field 'varaint', nearest is 'variant'"));
  CHECK(refusal("dtype == 'fp16'") == "column 10: unknown dtype 'fp16', nearest is 'f16'; allowed: f16, bf16, f32");
  CHECK(refusal("'cpu.flsh' == variant").starts_with("column 1: unknown variant 'cpu.flsh', nearest is 'cpu.flash'"));
  CHECK(refusal("dtype in ['f16', 'f8']").starts_with("column 18: unknown dtype 'f8'"));
}

TEST_CASE("expression: types are checked", "[sweep][expression]") {
  CHECK(refusal("batch") ==
        "column 1: the whole expression must be a condition, such as 'batch == 1', but is an integer");
  CHECK(refusal("causal and batch").starts_with("column 12: each side of 'and' must be a condition"));
  CHECK(refusal("not batch").starts_with("column 5: what follows 'not' must be a condition"));
  CHECK(refusal("batch == 'f16'") == "column 7: cannot compare an integer with a string");
  CHECK(refusal("causal == 1") == "column 8: cannot compare a condition with an integer");
  CHECK(refusal("dtype < 'f16'") == "column 7: '<' compares numbers, not a string");
  CHECK(refusal("batch + 1.5 > 2") == "column 9: '+' works on integers, not on a number");
  CHECK(refusal("causal + 1 > 2") == "column 1: '+' works on integers, not on a condition");
  CHECK(refusal("-dtype == 1") == "column 1: '-' works on numbers, not on a string");
  const Operator& decode = *find_operator("attention_decode");
  CHECK_THROWS_WITH(Expression("contexts == 1", decode, variant_names(decode)),
                    "column 1: 'contexts' is a list, which a condition cannot compare");
}

TEST_CASE("expression: fields of numbers and of words compare, and only compare", "[sweep][expression]") {
  Operator op;
  op.fields = {{.name = "soft_cap", .type = "number", .doc = "", .default_value = 0.0, .allowed = {}},
               {.name = "format", .type = "text", .doc = "", .default_value = std::string(), .allowed = {"a", "bc"}},
               {.name = "trace", .type = "text", .doc = "", .default_value = std::string(), .allowed = {}}};
  const auto with = [&op](const std::string& text) { return Expression(text, op, {"cpu.naive"}); };
  const Fields row{{"soft_cap", 12.5}, {"format", std::string("bc")}, {"trace", std::string("x.csv")}};
  for (const char* text : {"soft_cap == 12.5", "soft_cap > 12", "soft_cap in [1, 12.5]", "-soft_cap < 0",
                           "format == 'bc'", "format not in ['a']", "trace == 'x.csv'", "trace != 'any'"}) {
    INFO(text);
    CHECK(with(text).holds(row, "cpu.naive"));
    CHECK_FALSE(with("not (" + std::string(text) + ")").holds(row, "cpu.naive"));
  }
  CHECK_THROWS_WITH(with("format == 'bd'"), "column 11: unknown format 'bd', nearest is 'bc'; allowed: a, bc");
  CHECK_THROWS_WITH(with("soft_cap + 1 > 2"), "column 1: '+' works on integers, not on a number");
  CHECK_THROWS_WITH(with("soft_cap == 'bc'"), "column 10: cannot compare a number with a string");
  CHECK_THROWS_WITH(with("trace < 'a'"), "column 7: '<' compares numbers, not a string");
}

TEST_CASE("expression: what cannot be computed is an error, not a wrap", "[sweep][expression]") {
  CHECK(refusal("1 / (batch - 4) == 1") == "column 3: division by zero");
  CHECK(refusal("1 % (batch - 4) == 1") == "column 3: division by zero");
  CHECK(refusal("9223372036854775807 + batch > 0") == "column 21: the result passes 64 bits");
  CHECK(refusal("9223372036854775807 * batch > 0") == "column 21: the result passes 64 bits");
  CHECK(refusal("(-9223372036854775807 - 1) / -1 > 0") == "column 28: the result passes 64 bits");
  CHECK(refusal("-(-9223372036854775807 - 1) > 0") == "column 1: the result passes 64 bits");
}

TEST_CASE("expression: an alias has a value only where its fields agree", "[sweep][expression]") {
  const Expression expression("seq_len > 1", prefill(), variant_names(prefill()));
  const auto unequal =
      prefill().describe(prefill().parse({{"q_len", std::int64_t{1}}, {"kv_len", std::int64_t{8}}}).get());
  CHECK_THROWS_AS(expression.holds(unequal, "cpu.naive"), ExpressionError);
}

TEST_CASE("expression: nesting is bounded", "[sweep][expression]") {
  CHECK(holds(std::string(99, '(') + "causal" + std::string(99, ')')));
  CHECK(refusal(std::string(100'000, '(')) == "column 102: nested deeper than 100 levels");
  CHECK(refusal(std::string(100'000, '-')).find("nested deeper") != std::string::npos);
  std::string nots;
  for (int i = 0; i < 10'000; ++i) nots += "not ";
  CHECK(refusal(nots + "causal").find("nested deeper") != std::string::npos);
}

TEST_CASE("expression: the number of operators is bounded, however flat they stand", "[sweep][expression]") {
  const auto chain = [](int operators, const std::string& first, const std::string& link) {
    std::string text = first;
    for (int i = 0; i < operators; ++i) text += link;
    return text;
  };
  CHECK(holds(chain(1000, "causal", " and causal")));
  CHECK(refusal(chain(1001, "causal", " and causal")) == "column 11008: more than 1000 operators");
  CHECK(refusal(chain(60'000, "batch == 1", "+1")).ends_with("more than 1000 operators"));
  CHECK(refusal(chain(300'000, "causal", " and causal")).ends_with("more than 1000 operators"));
  CHECK(holds(chain(10'000, "batch in [4", ", 1") + "]"));  // a list is one operator
}

TEST_CASE("expression: it is known whether a condition depends on the variant", "[sweep][expression]") {
  CHECK(Expression("causal or variant == 'cpu.naive'", prefill(), variant_names(prefill())).uses_variant());
  CHECK_FALSE(Expression("causal or batch == 1", prefill(), variant_names(prefill())).uses_variant());
}
