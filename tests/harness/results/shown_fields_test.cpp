#include "harness/results/shown_fields.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

using Names = std::vector<std::string>;

// attention_prefill's defaults, but for head_dim.
Fields prefill(std::int64_t q_len) {
  return {{"batch", std::int64_t{1}},     {"q_len", q_len},  {"kv_len", std::int64_t{1}},
          {"head_dim", std::int64_t{96}}, {"causal", false}, {"dtype", Value("f16")}};
}

}  // namespace

TEST_CASE("shown fields: the default in all rows says nothing, unless the sweep names the field", "[results]") {
  const Fields row = prefill(1);
  const auto fixed = [&](const char* config) {
    return shown_fields(Json::parse(config), "attention_prefill", {&row, &row}).fixed;
  };
  CHECK(fixed("{}") == Names{"head_dim"});
  CHECK(fixed(R"({"fixed": {"dtype": "f16", "batch": 1}})") == Names{"batch", "head_dim", "dtype"});
  CHECK(fixed(R"({"axes": {"causal": [false]}})") == Names{"head_dim", "causal"});
  CHECK(fixed(R"({"zip": [{"batch": [1]}, {"causal": [false]}]})") == Names{"batch", "head_dim", "causal"});
  CHECK(fixed(R"({"axes": {"seq_len": [1]}})") == Names{"q_len", "kv_len", "head_dim"});
}

TEST_CASE("shown fields: the format of a cache is said only where it is not the plain one", "[results]") {
  const auto row = [](const char* format) {
    return Fields{{"kv_bits", std::int64_t{8}}, {"kv_format", Value(format)}};
  };
  const Json config = {{"fixed", {{"kv_bits", 8}}}, {"axes", {{"kv_format", {"integer", "fp8_e4m3"}}}}};
  const Fields integer = row("integer");
  const Fields fp8 = row("fp8_e4m3");
  for (const char* op : {"attention_decode", "kv_append"}) {
    CHECK(shown_fields(config, op, {&integer, &integer}).fixed == Names{"kv_bits"});
    CHECK(shown_fields(config, op, {&fp8, &fp8}).fixed == Names{"kv_bits", "kv_format"});
    CHECK(shown_fields(config, op, {&integer, &fp8}).varying == Names{"kv_format"});
  }
}

TEST_CASE("shown fields: a field that varies is shown, whatever its values", "[results]") {
  const Fields one = prefill(1);
  Fields two = prefill(2);
  two.emplace_back("window", std::int64_t{0});
  const ShownFields shown = shown_fields(Json::object(), "attention_prefill", {&one, &two});
  CHECK(shown.varying == Names{"q_len", "window"});
  CHECK(shown.fixed == Names{"head_dim"});
}

TEST_CASE("shown fields: of an unknown operator or without a config nothing is taken for a default", "[results]") {
  const Fields row = prefill(1);
  CHECK(shown_fields(Json::object(), "another", {&row}).fixed ==
        Names{"batch", "q_len", "kv_len", "head_dim", "causal", "dtype"});
  CHECK(shown_fields(Json(), "attention_prefill", {&row}).fixed == Names{"head_dim"});
  CHECK(shown_fields(Json::object(), "attention_prefill", {}).fixed.empty());
}

TEST_CASE("shown fields: a long list is shown by its ends and its length", "[results]") {
  const std::vector<std::int64_t> six{1, 2, 3, 4, 5, 6};
  CHECK(short_text(six) == "[1, 2, 3, 4, 5, 6]");
  const std::vector<std::int64_t> seven{1, 2, 3, 4, 5, 6, 70};
  CHECK(short_text(seven) == "[1, 2, 3, ..., 70] (7)");
  CHECK(short_text(std::string("f16")) == "f16");
}
