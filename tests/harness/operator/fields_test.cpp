// Problems as named fields: reading, showing, and every way in which a field can be wrong.
#include "harness/operator/fields.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

struct Problem {
  std::int64_t batch = 1;
  std::int64_t q_len = 16;
  std::int64_t kv_len = 16;
  bool causal = false;
  Dtype dtype = Dtype::f16;
  std::vector<std::int64_t> contexts;
  double soft_cap = 0;
  std::string format = "integer";
  std::string trace;
};

const std::vector<Field<Problem>> kDescription = {
    {.name = "batch", .member = &Problem::batch, .doc = "sequences", .min = 1, .max = 64},
    {.name = "q_len", .member = &Problem::q_len, .doc = "queries"},
    {.name = "kv_len", .member = &Problem::kv_len, .doc = "keys"},
    {.name = "causal", .member = &Problem::causal, .doc = "no later key"},
    {.name = "dtype", .member = &Problem::dtype, .doc = "elements", .dtypes = {Dtype::f16, Dtype::bf16}},
    {.name = "contexts", .member = &Problem::contexts, .doc = "lengths", .min = 0, .max = 100},
    {.name = "soft_cap", .member = &Problem::soft_cap, .doc = "bound of scores", .real_max = 100},
    {.name = "format", .member = &Problem::format, .doc = "of codes", .words = {"integer", "fp8_e4m3"}},
    {.name = "trace", .member = &Problem::trace, .doc = "a file"},
};
const std::vector<FieldAlias> kAliases = {{.name = "seq_len", .targets = {"q_len", "kv_len"}}};

Problem parsed(const Fields& given) { return problem_from_fields(kDescription, kAliases, given); }

// Field and sentence of the error.
std::string refusal(const Fields& given) {
  try {
    parsed(given);
  } catch (const ProblemError& error) {
    return error.field() + ": " + error.what();
  }
  return "accepted";
}

const std::int64_t kTwo = 2;

}  // namespace

TEST_CASE("fields: given fields replace the defaults, aliases set all their targets", "[fields]") {
  const Problem problem = parsed({{"seq_len", std::int64_t{512}},
                                  {"causal", true},
                                  {"dtype", std::string("bf16")},
                                  {"contexts", std::vector<std::int64_t>{7, 0, 100}}});
  CHECK(problem.batch == 1);
  CHECK(problem.q_len == 512);
  CHECK(problem.kv_len == 512);
  CHECK(problem.causal);
  CHECK(problem.dtype == Dtype::bf16);
  CHECK(problem.contexts == std::vector<std::int64_t>{7, 0, 100});
}

TEST_CASE("fields: a described problem reads back as itself, in the operator's order", "[fields]") {
  const Fields described = fields_from_problem(kDescription, parsed({{"kv_len", kTwo}, {"batch", kTwo}}));
  CHECK(to_string(described) ==
        "batch=2 q_len=16 kv_len=2 causal=false dtype=f16 contexts=[] soft_cap=0.0 format=integer trace=");
  CHECK(fields_from_problem(kDescription, parsed(described)) == described);
}

TEST_CASE("fields: an unknown field is refused with the nearest one and all others", "[fields]") {
  CHECK(refusal({{"bacth", kTwo}}) ==
        "bacth: unknown field 'bacth', nearest is 'batch'; allowed: batch, q_len, kv_len, causal, dtype, contexts, "
        "soft_cap, format, trace, seq_len");
  CHECK(refusal({{"seqlen", kTwo}}).find("nearest is 'seq_len'") != std::string::npos);
}

TEST_CASE("fields: a field given twice is refused, also by way of an alias", "[fields]") {
  CHECK(refusal({{"batch", kTwo}, {"batch", kTwo}}) == "batch: field 'batch' is given twice");
  CHECK(refusal({{"seq_len", kTwo}, {"kv_len", kTwo}}) ==
        "kv_len: field 'kv_len' is given twice (by 'seq_len' and by 'kv_len')");
  CHECK(refusal({{"q_len", kTwo}, {"seq_len", kTwo}}) ==
        "seq_len: field 'q_len' is given twice (by 'q_len' and by 'seq_len')");
}

TEST_CASE("fields: values out of range or of another type are refused with what is allowed", "[fields]") {
  CHECK(refusal({{"batch", std::int64_t{0}}}) == "batch: batch must be an integer from 1 to 64, got 0");
  CHECK(refusal({{"batch", std::int64_t{65}}}) == "batch: batch must be an integer from 1 to 64, got 65");
  CHECK(refusal({{"batch", std::int64_t{64}}}) == "accepted");
  CHECK(refusal({{"batch", 2.0}}) == "batch: batch must be an integer from 1 to 64, got 2.0");
  CHECK(refusal({{"batch", true}}) == "batch: batch must be an integer from 1 to 64, got true");
  CHECK(refusal({{"batch", std::string("2")}}) == "batch: batch must be an integer from 1 to 64, got '2'");
  CHECK(refusal({{"causal", std::int64_t{1}}}) == "causal: causal must be true or false, got 1");
  CHECK(refusal({{"causal", std::string("true")}}) == "causal: causal must be true or false, got 'true'");
  CHECK(refusal({{"contexts", kTwo}}) == "contexts: contexts must be a list of integers from 0 to 100, got 2");
  CHECK(refusal({{"contexts", std::vector<std::int64_t>{1, 101}}}) ==
        "contexts: contexts must be a list of integers from 0 to 100, got 101 at position 1");
}

TEST_CASE("fields: a dtype is one of those the field allows", "[fields]") {
  CHECK(refusal({{"dtype", std::string("fp16")}}) ==
        "dtype: dtype must be one of f16, bf16, got 'fp16', nearest is 'f16'");
  CHECK(refusal({{"dtype", std::string("f32")}}).find("must be one of f16, bf16, got 'f32'") != std::string::npos);
  CHECK(refusal({{"dtype", kTwo}}) == "dtype: dtype must be one of f16, bf16, got 2");
}

TEST_CASE("fields: a number is read from a number or an integer within its range", "[fields]") {
  CHECK(parsed({{"soft_cap", 12.5}}).soft_cap == 12.5);
  CHECK(parsed({{"soft_cap", std::int64_t{50}}}).soft_cap == 50.0);
  CHECK(parsed({{"soft_cap", 100.0}}).soft_cap == 100.0);
  const Fields described = fields_from_problem(kDescription, parsed({{"soft_cap", std::int64_t{50}}}));
  CHECK(described[6].second == Value(50.0));
  CHECK(fields_from_problem(kDescription, parsed(described)) == described);
  CHECK(to_string(fields_from_problem(kDescription, parsed({{"soft_cap", -0.0}}))[6].second) == "0.0");
  CHECK(refusal({{"soft_cap", 100.5}}) == "soft_cap: soft_cap must be a number from 0.0 to 100.0, got 100.5");
  CHECK(refusal({{"soft_cap", std::int64_t{-1}}}) == "soft_cap: soft_cap must be a number from 0.0 to 100.0, got -1");
  CHECK(refusal({{"soft_cap", std::string("50")}}) ==
        "soft_cap: soft_cap must be a number from 0.0 to 100.0, got '50'");
  CHECK(refusal({{"soft_cap", true}}) == "soft_cap: soft_cap must be a number from 0.0 to 100.0, got true");
  CHECK(refusal({{"soft_cap", std::numeric_limits<double>::quiet_NaN()}}).ends_with("got nan"));
}

TEST_CASE("fields: a text is one of the words its field lists, or any where it lists none", "[fields]") {
  CHECK(parsed({{"format", std::string("fp8_e4m3")}}).format == "fp8_e4m3");
  CHECK(parsed({{"trace", std::string("data/a b.csv")}}).trace == "data/a b.csv");
  CHECK(parsed({{"trace", std::string()}}).trace.empty());
  CHECK(refusal({{"format", std::string("fp8_e4m")}}) ==
        "format: format must be one of integer, fp8_e4m3, got 'fp8_e4m', nearest is 'fp8_e4m3'");
  CHECK(refusal({{"format", std::string("zzz")}}) == "format: format must be one of integer, fp8_e4m3, got 'zzz'");
  CHECK(refusal({{"format", kTwo}}) == "format: format must be one of integer, fp8_e4m3, got 2");
  CHECK(refusal({{"trace", kTwo}}) == "trace: trace must be a text, got 2");
}

TEST_CASE("fields: infos say type, default and what is allowed", "[fields]") {
  const std::vector<FieldInfo> infos = field_infos(kDescription);
  REQUIRE(infos.size() == 9);
  CHECK(infos[1].type == "integer");
  CHECK(infos[1].default_value == Value(std::int64_t{16}));
  CHECK(infos[3].type == "boolean");
  CHECK(infos[4].type == "dtype");
  CHECK(infos[4].default_value == Value(std::string("f16")));
  CHECK(infos[4].allowed == std::vector<std::string>{"f16", "bf16"});
  CHECK(infos[5].type == "integer list");
  CHECK(infos[5].doc == "lengths");
  CHECK(infos[6].type == "number");
  CHECK(infos[6].default_value == Value(0.0));
  CHECK(infos[6].allowed.empty());
  CHECK(infos[7].type == "text");
  CHECK(infos[7].default_value == Value(std::string("integer")));
  CHECK(infos[7].allowed == std::vector<std::string>{"integer", "fp8_e4m3"});
  CHECK(infos[8].allowed.empty());
}

TEST_CASE("fields: values show as JSON does, strings bare", "[fields]") {
  CHECK(to_string(Value(true)) == "true");
  CHECK(to_string(Value(std::int64_t{-3})) == "-3");
  CHECK(to_string(Value(0.1)) == "0.1");
  CHECK(to_string(Value(100.0)) == "100.0");
  CHECK(to_string(Value(1e300)) == "1e+300");
  CHECK(to_string(Value(std::string("f16"))) == "f16");
  CHECK(to_string(Value(std::vector<std::int64_t>{1, 2})) == "[1, 2]");
}

TEST_CASE("fields: products of sizes are exact or refused", "[fields]") {
  const std::int64_t big = std::int64_t{1} << 32;
  CHECK(checked_product("q", {big, big / 2 - 1}) == big * (big / 2 - 1));
  CHECK(checked_product("q", {}) == 1);
  CHECK(checked_product("q", {big, big, 0}) == 0);
  CHECK_THROWS_WITH(checked_product("q", {big, big / 2}), "q must be a size below 2^63, got 4294967296 x 2147483648");
}
