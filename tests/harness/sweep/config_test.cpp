// What a config may not be: each message says where, what is allowed and what came.
#include <string>

#include "tests/harness/sweep/config_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

bool mentions(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("config: syntax errors name line and column", "[sweep][config]") {
  CHECK(mentions(refusal("{\"schema\": 1,\n  \"axes\": }"), "c.json:2:11: syntax error while parsing value"));
  CHECK(mentions(refusal(""), "c.json:1:1: syntax error"));
  CHECK(mentions(refusal("{\"a\": 1e999}"), "c.json:1:"));
  CHECK(mentions(refusal("{\"a\": 1} x"), "c.json:1:10: "));
  CHECK(mentions(refusal("{\"a\": \"\xff\"}"), "c.json:1:"));
  CHECK(mentions(refusal("{\"a\": NaN}"), "c.json:1:"));
}

TEST_CASE("config: a key given twice is an error, at any depth", "[sweep][config]") {
  CHECK(refusal(R"({"a": 1, "b": 2, "a": 3})") == "c.json: /: the key 'a' is given twice");
  CHECK(refusal_with(R"("axes": {"seq_len": [1], "seq_len": [2]})") ==
        "c.json: /axes: the key 'seq_len' is given twice");
  CHECK(refusal_with(R"("zip": [{"q_len": [1]}, {"kv_len": [1], "kv_len": [1]}])") ==
        "c.json: /zip/1: the key 'kv_len' is given twice");
}

TEST_CASE("config: deep nesting is refused, not followed", "[sweep][config]") {
  CHECK(mentions(refusal(std::string(1'000'000, '[')), "nested deeper than 16 levels"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  CHECK(mentions(refusal(objects), "nested deeper than 16 levels"));
}

TEST_CASE("config: ten megabytes are answered quickly", "[sweep][config]") {
  std::string keys = "{";
  for (int i = 0; keys.size() < 10'000'000; ++i) keys += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
  CHECK(mentions(refusal(keys + "}"), "unknown key '0'"));
  std::string values;
  while (values.size() < 10'000'000) values += values.empty() ? "1" : ",1";
  CHECK(mentions(refusal_with("\"axes\": {\"seq_len\": [" + values + "]}"),
                 "/axes/seq_len: must have at most 1000000 elements"));
  CHECK(mentions(refusal(std::string(10'000'000, ' ')), "syntax error"));
  CHECK(mentions(refusal(std::string(10'000'000, '"')), "c.json:1:"));
}

TEST_CASE("config: unknown and missing keys", "[sweep][config]") {
  CHECK(refusal_with(R"("axis": {})") ==
        "c.json: unknown key 'axis', nearest is 'axes'; allowed: schema, name, question, operator, variants, baseline, "
        "fixed, axes, zip, where, measure, limits");
  CHECK(
      refusal_with(R"("measure": {"max_second": 1})") ==
      "c.json: /measure: unknown key 'max_second', nearest is 'max_seconds'; allowed: cache, min_samples, max_samples, "
      "max_seconds, relative_ci, rest_seconds, kernel_times");
  CHECK(mentions(refusal_with(R"("limits": {"row_second": 1})"), "c.json: /limits: unknown key 'row_second'"));
  CHECK(refusal("{}") == "c.json: the key 'schema' is missing");
  CHECK(refusal(R"({"schema": "inferometer.sweep/1"})") == "c.json: the key 'name' is missing");
  CHECK(refusal(R"({"schema": "inferometer.sweep/2"})") ==
        "c.json: /schema: must be 'inferometer.sweep/1', got 'inferometer.sweep/2'");
  CHECK(refusal("[]") == "c.json: must be an object, got an empty array");
  CHECK(refusal("null") == "c.json: must be an object, got null");
}

TEST_CASE("config: operator, variants and name", "[sweep][config]") {
  const auto config = [](const std::string& name, const std::string& op, const std::string& variants) {
    return R"({"schema": "inferometer.sweep/1", "name": )" + name + R"(, "operator": )" + op + R"(, "variants": )" +
           variants + "}";
  };
  CHECK(mentions(refusal(config("\"t\"", "\"attention_prefil\"", "[\"cpu.naive\"]")),
                 "c.json: /operator: unknown operator 'attention_prefil', nearest is 'attention_prefill'; allowed: "));
  CHECK(mentions(refusal(config("\"t\"", "\"attention_prefill\"", "[\"cpu.naive\", \"cpu.flsh\"]")),
                 "c.json: /variants/1: unknown variant of attention_prefill 'cpu.flsh', nearest is 'cpu.flash'"));
  CHECK(mentions(refusal(config("\"t\"", "\"attention_prefill\"", "[\"rocm.*\"]")),
                 "c.json: /variants/0: no variant of attention_prefill matches 'rocm.*'; there are: "));
  CHECK(refusal(config("\"t\"", "\"attention_prefill\"", "[]")) ==
        "c.json: /variants: must be an array with at least one element, got an empty array");
  CHECK(refusal(config("\"t\"", "\"attention_prefill\"", "[1]")) == "c.json: /variants/0: must be a string, got 1");
  CHECK(refusal(config("\"t\"", "7", "[\"cpu.naive\"]")) == "c.json: /operator: must be a string, got 7");
  for (const char* name : {"\"\"", "\"../a\"", "\".a\"", "\"a b\"", "\"a\\n\""})
    CHECK(mentions(refusal(config(name, "\"attention_prefill\"", "[\"cpu.naive\"]")),
                   "c.json: /name: must be 1 to 100 of "));
}

TEST_CASE("config: axes, fixed and zip of the wrong shape", "[sweep][config]") {
  CHECK(refusal_with(R"("axes": {"seq_len": 512})") ==
        "c.json: /axes/seq_len: must be an array with at least one element, got 512");
  CHECK(refusal_with(R"("axes": {"seq_len": []})") ==
        "c.json: /axes/seq_len: must be an array with at least one element, got an empty array");
  CHECK(refusal_with(R"("axes": [])") == "c.json: /axes: must be an object, got an empty array");
  CHECK(mentions(refusal_with(R"("axes": {"seq_len": [1, {}]})"),
                 "c.json: /axes/seq_len/1: must be true, false, an integer"));
  CHECK(mentions(refusal_with(R"("fixed": {"batch": null})"), "c.json: /fixed/batch: must be true, false, an integer"));
  CHECK(mentions(refusal_with(R"("fixed": {"batch": 18446744073709551615})"), "got 18446744073709551615"));
  CHECK(mentions(refusal_with(R"("axes": {"heads": [1]})"),
                 "c.json: /axes/heads: unknown field 'heads', nearest is 'q_heads'"));
  CHECK(refusal_with(R"("zip": [{"q_heads": [8, 4], "kv_heads": [8]}])") ==
        "c.json: /zip/0/kv_heads: has 1 values, but 'q_heads' of the same group has 2");
  CHECK(refusal_with(R"("zip": [{}])") == "c.json: /zip/0: a zip group must name at least one field");
  CHECK(refusal_with(R"("zip": {})") == "c.json: /zip: must be an array, got an object");
}

TEST_CASE("config: a field given twice is an error, also by way of an alias", "[sweep][config]") {
  CHECK(refusal_with(R"("fixed": {"batch": 1}, "axes": {"batch": [1, 2]})") ==
        "c.json: /axes/batch: the field 'batch' is given twice, also by c.json: /fixed/batch");
  CHECK(refusal_with(R"("fixed": {"seq_len": 1, "kv_len": 2})") ==
        "c.json: /fixed/kv_len: the field 'kv_len' is given twice, also by c.json: /fixed/seq_len");
  CHECK(mentions(refusal_with(R"("zip": [{"seq_len": [1], "q_len": [1]}])"),
                 "c.json: /zip/0/q_len: the field 'q_len' is given twice"));
  CHECK(mentions(refusal_with(R"("zip": [{"batch": [1]}, {"batch": [1]}])"), "the field 'batch' is given twice"));
  CHECK(mentions(refusal_with(R"("axes": {"seq_len": [8]}, "zip": [{"q_len": [1]}])"),
                 "the field 'q_len' is given twice"));
}

TEST_CASE("config: problems that cannot be name the value at fault", "[sweep][config]") {
  CHECK(refusal_with(R"("axes": {"seq_len": [16, 0]})")
            .starts_with("c.json: /axes/seq_len/1: q_len must be an integer from 1 to 1099511627776, got 0 ("));
  CHECK(refusal_with(R"("fixed": {"batch": -1})").starts_with("c.json: /fixed/batch: batch must be an integer from 1"));
  CHECK(refusal_with(R"("fixed": {"causal": 1})")
            .starts_with("c.json: /fixed/causal: causal must be true or false, got 1"));
  CHECK(refusal_with(R"("zip": [{"q_heads": [8, 8], "kv_heads": [8, 3]}])")
            .starts_with("c.json: /zip/0/q_heads/1: q_heads must be"));
  CHECK(mentions(refusal_with(R"("fixed": {"batch": 1099511627776, "q_heads": 1099511627776})"), "2^63"));
}

TEST_CASE("config: measure and limits are read, and checked", "[sweep][config]") {
  const Sweep sweep = parse_sweep(
      config_with(
          R"("measure": {"cache": "warm", "min_samples": 3, "max_samples": 4, "max_seconds": 0.5, "relative_ci": 0.1,
                                 "rest_seconds": 0.25, "kernel_times": true},
                     "limits": {"row_seconds": 7, "host_bytes": 1000, "device_bytes": null})"),
      "c.json", {});
  CHECK(sweep.measure.cache == CacheMode::warm);
  CHECK(sweep.measure.min_samples == 3);
  CHECK(sweep.measure.max_samples == 4);
  CHECK(sweep.measure.max_seconds == 0.5);
  CHECK(sweep.measure.relative_ci == 0.1);
  CHECK(sweep.measure.rest_seconds == 0.25);
  CHECK(sweep.measure.kernel_times);
  CHECK(sweep.limits.row_seconds == 7);
  CHECK(sweep.limits.host_bytes == std::size_t{1000});
  CHECK_FALSE(sweep.limits.device_bytes);
  CHECK(refusal_with(R"("measure": {"cache": "hot"})") == "c.json: /measure/cache: must be cold or warm, got 'hot'");
  CHECK(refusal_with(R"("measure": {"min_samples": 0})") ==
        "c.json: /measure/min_samples: must be an integer from 1 to 1000000, got 0");
  CHECK(refusal_with(R"("measure": {"max_seconds": 0})") ==
        "c.json: /measure/max_seconds: must be a number above 0.0, at most 604800.0, got 0");
  CHECK(refusal_with(R"("measure": {"kernel_times": 1})") ==
        "c.json: /measure/kernel_times: must be true or false, got 1");
  for (const char* allowed : {"0", "10"}) {
    CAPTURE(allowed);
    CHECK(refusal_with(R"("measure": {"rest_seconds": )" + std::string(allowed) + "}") == "accepted");
  }
  for (const char* wrong : {"-0.1", "10.5", "true", "null", "[]"}) {
    CAPTURE(wrong);
    CHECK(refusal_with(R"("measure": {"rest_seconds": )" + std::string(wrong) + "}")
              .starts_with("c.json: /measure/rest_seconds: must be a number from 0 to 10.0, got "));
  }
  CHECK(mentions(refusal_with(R"("measure": {"min_samples": 50, "max_samples": 40})"), "must not exceed"));
  CHECK(mentions(refusal_with(R"("limits": {"host_bytes": -1})"),
                 "c.json: /limits/host_bytes: must be an integer from 0"));
}

TEST_CASE("config: a baseline is a variant of the sweep", "[sweep][config]") {
  CHECK(mentions(refusal_with(R"("baseline": "cpu.naiv")"),
                 "c.json: /baseline: unknown variant of this sweep 'cpu.naiv', nearest is 'cpu.naive'"));
  CHECK(mentions(refusal_with(R"("baseline": 1)"), "c.json: /baseline: must be a variant, or an object"));
  CHECK(mentions(refusal_with(R"("baseline": {"problem": {}})"), "c.json: /baseline: the key 'variant' is missing"));
  CHECK(mentions(refusal_with(R"("baseline": {"variant": "cpu.naive", "problem": {"casual": true}})"),
                 "c.json: /baseline/problem/casual: unknown field 'casual', nearest is 'causal'"));
  CHECK(mentions(refusal_with(R"("baseline": {"variant": "cpu.naive", "problem": {"causal": 3}})"),
                 "c.json: /baseline: is no problem of any row: causal must be true or false, got 3"));
}

TEST_CASE("config: conditions are checked when they are read", "[sweep][config]") {
  CHECK(refusal_with(R"("where": ["seqlen > 2"])")
            .starts_with("c.json: /where/0: column 1: unknown field 'seqlen', nearest is 'seq_len'"));
  CHECK(refusal_with(R"("where": ["batch > 8"])") ==
        "c.json: no row is left: the conditions (where, --filter) leave out all");
  CHECK(refusal_with(R"("where": ["8 / (batch - 1) > 0"])")
            .starts_with("c.json: /where/0: column 3: division by zero (batch=1 "));
}

TEST_CASE("config: files that cannot be read", "[sweep][config]") {
  CHECK_THROWS_WITH(load_sweep("/no/such/file.json", {}),
                    "/no/such/file.json: cannot be opened: No such file or directory");
  CHECK_THROWS_WITH(load_sweep("/tmp", {}), "/tmp: cannot be read: Is a directory");
  CHECK_THROWS_WITH(load_sweep("/dev/zero", {}), "/dev/zero: larger than 16 MiB, which no config is");
}

TEST_CASE("config: options that are no UTF-8 are refused by name", "[sweep][config]") {
  CHECK(refusal_with("", {.set = {"seq_len=\xff"}}) == "--set: must be UTF-8, got other bytes");
  CHECK(refusal_with("", {.variants = {"cpu.*\xc3"}}) == "--variants: must be UTF-8, got other bytes");
  CHECK(refusal_with("", {.filter = "dtype == '\xff'"}) == "--filter: must be UTF-8, got other bytes");
}
