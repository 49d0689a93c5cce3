#include "harness/claims/claims_file.hpp"

#include <string>
#include <utility>
#include <vector>

#include "tests/harness/claims/made_up.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

const std::string kPart =
    R"({"name": "p", "experiment": "e.json", "operator": "matmul", "variants": ["cuda.w4a16"], "where": ["m <= 16"],
        "statistic": "inverse_ratio", "quantity": "time", "against": {"variant": "cublas.f16", "problem": {"bits": 16}},
        "accepted": {"min": 3.5}})";

std::string document(const std::string& part, const std::string& runs = "[]") {
  return R"({"schema": "inferometer.claims/1", "claims": [{"id": "a", "claim": "c", "source": "s", "conditions": "t",
             "parts": [)" +
         part + R"(], "runs": )" + runs + "}]}";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string refusal(const std::string& text) {
  try {
    parse_claims(text, "claims.json");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("claims: a list is read as it stands", "[claims]") {
  const std::vector<Claim> claims =
      parse_claims(document(kPart, R"([{"experiment": "e.json", "variants": ["cpu.*"], "filter": "m == 1",
                                        "set": ["m=1"], "gpu": true}])"),
                   "claims.json");
  REQUIRE(claims.size() == 1);
  const ClaimPart& part = claims.front().parts.front();
  CHECK(part.op->name == "matmul");
  CHECK(part.statistic == Statistic::inverse_ratio);
  CHECK(part.quantity.kind == Quantity::Kind::time);
  CHECK(part.against->variant == "cublas.f16");
  CHECK(part.against->replaced == Fields{{"bits", std::int64_t{16}}});
  CHECK(part.accepted.min == 3.5);
  CHECK_FALSE(part.accepted.max.has_value());
  CHECK(part.role == PartRole::decides);
  const ClaimRun& run = claims.front().runs.front();
  CHECK(run.needs_gpu);
  CHECK(run.options.filter == "m == 1");
  CHECK(run.options.set == std::vector<std::string>{"m=1"});
}

TEST_CASE("claims: conditions of a claim hold for each of its parts, beside the part's own", "[claims]") {
  const auto with = [](const std::string& where) {
    const std::string parts = kPart + ", " + replaced(kPart, "\"where\": [\"m <= 16\"],", "");
    return replaced(document(parts), "\"parts\"", "\"where\": [\"" + where + "\"], \"parts\"");
  };
  const std::vector<ClaimPart> parts = parse_claims(with("n > 64"), "claims.json").front().parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].where.size() == 2);
  CHECK(parts[1].where.size() == 1);
  for (const ClaimPart& part : parts)
    for (const std::int64_t n : {64, 65})
      CHECK(part.where.front().expression.holds({{"m", std::int64_t{1}}, {"n", n}}, "") == (n == 65));
  CHECK_THAT(refusal(with("slots > 1")), test::contains_text("/claims/0/where/0: column 1"));
}

TEST_CASE("claims: a mistake is refused with its place and the nearest word", "[claims]") {
  const std::vector<std::pair<std::string, std::string>> mistakes{
      {document(replaced(kPart, "\"matmul\"", "\"matmull\"")),
       "/claims/0/parts/0/operator: unknown operator 'matmull', nearest is 'matmul'"},
      {document(replaced(kPart, "cuda.w4a16", "cuda.w4a61")),
       "/claims/0/parts/0/variants/0: unknown variant of matmul"},
      {document(replaced(kPart, "m <= 16", "mm <= 16")), "/claims/0/parts/0/where/0: column 1"},
      {document(replaced(kPart, "inverse_ratio", "inverse")), "/claims/0/parts/0/statistic: unknown statistic"},
      {document(replaced(kPart, "\"time\"", "\"metrics.wieghts_bytes\"")),
       "/claims/0/parts/0/quantity: unknown metric of matmul"},
      {document(replaced(kPart, "\"time\"", "\"speed\"")),
       "/claims/0/parts/0/quantity: must be 'time', 'metrics.NAME' or 'memory.ROLE', got 'speed'"},
      {document(replaced(kPart, "cublas.f16", "cublas.f61")),
       "/claims/0/parts/0/against/variant: unknown variant of matmul"},
      {document(replaced(kPart, "{\"bits\": 16}", "{\"bit\": 16}")),
       "/claims/0/parts/0/against/problem/bit: unknown field of matmul"},
      {document(replaced(kPart, "{\"min\": 3.5}", "{\"min\": \"3.5\"}")),
       "/claims/0/parts/0/accepted/min: must be a number, got '3.5'"},
      {document(replaced(kPart, "{\"min\": 3.5}", "{\"min\": 4, \"max\": 3}")),
       "/claims/0/parts/0/accepted: 'min' is above 'max'"},
      {document(replaced(kPart, "{\"min\": 3.5}", "{}")), "/claims/0/parts/0/accepted: needs 'min', 'max' or both"},
      {document(replaced(kPart, "\"accepted\": {\"min\": 3.5}", "\"claimed\": \"4x\"")),
       "/claims/0/parts/0: the key 'accepted' is missing"},
      {document(replaced(kPart, "\"inverse_ratio\"", "\"crossover\"")),
       "/claims/0/parts/0: the statistic 'crossover' needs the key 'along'"},
      {document(replaced(kPart, "\"inverse_ratio\"", "\"value\"")),
       "/claims/0/parts/0/against: means nothing to the statistic 'value'"},
      {document(replaced(kPart, "\"accepted\"", "\"role\": \"beside\", \"accepted\"")),
       "/claims/0/parts: needs a part whose role is 'decides'"},
      {document(replaced(kPart, "\"accepted\"", "\"role\": \"besides\", \"accepted\"")),
       "/claims/0/parts/0/role: unknown role 'besides', nearest is 'beside'"},
      {document(replaced(kPart, "\"name\"", "\"nmae\"")), "/claims/0/parts/0: unknown key 'nmae', nearest is 'name'"},
      {document(kPart, R"([{"experiment": "e.json", "gpu": 1}])"),
       "/claims/0/runs/0/gpu: must be true or false, got 1"},
      {replaced(document(kPart), "claims/1", "claims/2"), "/schema: must be 'inferometer.claims/1'"},
      {replaced(document(kPart), "\"id\": \"a\"", "\"id\": \"A b\""), "/claims/0/id: must be one or more of a-z"},
      {replaced(document(kPart), "\"source\": \"s\"", "\"source\": \"\""),
       "/claims/0/source: must be a string that says something"},
      {R"({"schema": "inferometer.claims/1", "claims": []})", "/claims: must be an array with at least one element"},
      {"{", "claims.json:1:2"}};
  for (const auto& [text, wanted] : mistakes) {
    INFO(text);
    CHECK_THAT(refusal(text), test::contains_text(wanted));
  }
}

TEST_CASE("claims: two claims of one id are refused", "[claims]") {
  const std::string claim =
      R"({"id": "a", "claim": "c", "source": "s", "conditions": "t", "parts": [)" + kPart + R"(], "runs": []})";
  CHECK_THAT(refusal(R"({"schema": "inferometer.claims/1", "claims": [)" + claim + "," + claim + "]}"),
             test::contains_text("/claims/1/id: another claim is called 'a' too"));
}

TEST_CASE("claims: variants of frameworks that are not installed here are taken as they stand", "[claims]") {
  CHECK(refusal(document(replaced(kPart, "cublas.f16", "elsewhere.gemm"))) == "");
}
