#include "harness/claims/measurement.hpp"

#include "harness/claims/row_figures.hpp"
#include "tests/harness/claims/made_up.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

Measurement measured(const std::string& part, const std::vector<NamedResults>& files) {
  return measure(one_part_claim(part).parts.front(), Evidence(files));
}

Record with_metric(Record record, const std::string& name, double value) {
  record.metrics.push_back({name, value});
  return record;
}

const std::string kSlower = kSlowdown + R"(, "accepted": {"min": 1.15})";
const std::string kError =
    R"("statistic": "value", "quantity": "metrics.quantization_rel_error", "accepted": {"max": 0.1})";

}  // namespace

TEST_CASE("claims: a ratio of times is the row's over its counterpart's, with the interval of both", "[claims]") {
  const Measurement found = measured(
      kSlower,
      {made_up_file("a.json", {decode_row("cuda.contiguous", 128, 0, 100), decode_row("cuda.paged", 128, 16, 120)})});
  REQUIRE(found.points.size() == 1);
  const ClaimPoint& point = found.points.front();
  CHECK(point.value == Approx(1.2));
  REQUIRE(point.interval.has_value());
  CHECK(point.interval->low == Approx(1.2 * 0.99 / 1.01));
  CHECK(point.interval->high == Approx(1.2 * 1.01 / 0.99));
  CHECK(point.inside);
  CHECK(point.device == "some GPU");
  CHECK(found.left_out.empty());
}

TEST_CASE("claims: rows that are not ok never count, on either side of a ratio", "[claims]") {
  const Record base = decode_row("cuda.contiguous", 128, 0, 100);
  const Record row = decode_row("cuda.paged", 128, 16, 120);
  for (const Status status : {Status::incorrect, Status::unsupported, Status::crashed, Status::error}) {
    const Measurement of_row = measured(kSlower, {made_up_file("a.json", {base, failed(row, status)})});
    CHECK(of_row.points.empty());
    CHECK(of_row.left_out.size() == 1);
    const Measurement of_base = measured(kSlower, {made_up_file("a.json", {failed(base, status), row})});
    CHECK(of_base.points.empty());
    CHECK(of_base.left_out == std::map<std::string, int>{{"without an ok counterpart in their file", 1}});
  }
  Record suspect = row;  // it has a time, which makes no claim
  suspect.status = Status::suspect;
  CHECK(measured(kSlower, {made_up_file("a.json", {base, suspect})}).left_out ==
        std::map<std::string, int>{{"suspect", 1}});
}

TEST_CASE("claims: a row and its counterpart come from one file", "[claims]") {
  const Measurement found =
      measured(kSlower, {made_up_file("a.json", {decode_row("cuda.contiguous", 128, 0, 100)}, "one GPU"),
                         made_up_file("b.json", {decode_row("cuda.paged", 128, 16, 120)}, "another GPU")});
  CHECK(found.points.empty());
}

TEST_CASE("claims: what was measured again on a device counts once, as measured last", "[claims]") {
  const auto file = [](const std::string& path, double ns, const std::string& gpu, const std::string& started_at) {
    return made_up_file(path, {decode_row("cuda.contiguous", 128, 0, 100), decode_row("cuda.paged", 128, 16, ns)}, gpu,
                        started_at);
  };
  const std::vector<NamedResults> files{file("new.json", 130, "A", "2026-11-30T02:00:00Z"),
                                        file("old.json", 110, "A", "2026-11-30T01:00:00Z"),
                                        file("other.json", 105, "B", "2026-11-30T00:00:00Z")};
  const Measurement found = measured(kSlower, files);
  REQUIRE(found.points.size() == 2);
  CHECK(found.points[0].value == Approx(1.3));
  CHECK(found.points[0].inside);
  CHECK(found.points[1].device == "B");
  CHECK_FALSE(found.points[1].inside);
  CHECK(found.left_out == std::map<std::string, int>{{"measured again later", 1}});
}

TEST_CASE("claims: conditions and variants choose the rows", "[claims]") {
  const NamedResults file =
      made_up_file("a.json", {decode_row("cuda.contiguous", 128, 0, 100), decode_row("cuda.paged", 128, 16, 120),
                              decode_row("cuda.contiguous", 1024, 0, 200), decode_row("cuda.paged", 1024, 16, 210)});
  const Measurement found = measured(R"("where": ["context > 128"], )" + kSlower, {file});
  REQUIRE(found.points.size() == 1);
  CHECK(found.points.front().value == Approx(1.05));
}

TEST_CASE("claims: a metric that is absent or no number is left out and said so", "[claims]") {
  const Record row = decode_row("cuda.paged", 128, 16, 120);
  const Record other = decode_row("cuda.paged", 256, 16, 120);
  const Record third = decode_row("cuda.paged", 512, 16, 120);
  const Measurement found = measured(
      kError, {made_up_file("a.json",
                            {with_metric(row, "quantization_rel_error", 0.05), other,
                             with_metric(third, "quantization_rel_error", std::numeric_limits<double>::quiet_NaN())})});
  REQUIRE(found.points.size() == 1);
  CHECK(found.points.front().value == 0.05);
  CHECK(found.left_out == std::map<std::string, int>{{"without the figure", 2}});
}

TEST_CASE("claims: where anything was measured, simulated points do not count", "[claims]") {
  const Record simulated =
      with_metric(with_metric(decode_row("cuda.paged", 128, 16, 120), "quantization_rel_error", 0.5), "simulated", 1);
  const Record timed = with_metric(decode_row("cuda.paged", 256, 16, 120), "quantization_rel_error", 0.05);
  const Measurement alone = measured(kError, {made_up_file("a.json", {simulated})});
  REQUIRE(alone.points.size() == 1);
  CHECK(alone.points.front().simulated);
  const Measurement both = measured(kError, {made_up_file("a.json", {simulated, timed})});
  REQUIRE(both.points.size() == 1);
  CHECK_FALSE(both.points.front().simulated);
  REQUIRE(both.replaced.size() == 1);
  CHECK(both.replaced.front().simulated);
  CHECK(both.left_out == std::map<std::string, int>{{"simulated, where others were measured", 1}});
}

TEST_CASE("claims: statistics along a field make one point of rows that are alike but for it", "[claims]") {
  std::vector<Record> records;
  for (const std::int64_t context : {128, 256, 512}) {
    const auto length = static_cast<double>(context);
    records.push_back(decode_row("cuda.paged", context, 16, length * length));
    records.push_back(decode_row("cuda.paged", context, 32, length));
  }
  records.push_back(decode_row("cuda.paged", 128, 64, 1));
  const Measurement found =
      measured(R"("statistic": "fitted_exponent", "quantity": "time", "along": "context", "accepted": {"min": 1.5})",
               {made_up_file("a.json", records)});
  REQUIRE(found.points.size() == 2);
  CHECK(found.points[0].value == Approx(2));
  CHECK(found.points[0].inside);
  CHECK(found.points[1].value == Approx(1));
  CHECK_FALSE(found.points[1].inside);
  CHECK(found.left_out == std::map<std::string, int>{{"in groups too small for the statistic", 1}});
}

TEST_CASE("claims: a row whose figure is 0 has no share, and that is said to be why", "[claims]") {
  const char* const part = R"("statistic": "share_of_best", "quantity": "metrics.quantization_rel_error",
                              "along": "block_size", "better": "lower", "judged": ["block_size > 0"], "accepted": {"min": 0})";
  const Record none = with_metric(decode_row("cuda.paged", 128, 16, 80), "quantization_rel_error", 0);
  const Record some = with_metric(decode_row("cuda.paged", 128, 32, 80), "quantization_rel_error", 0.5);
  const Measurement found = measured(part, {made_up_file("a.json", {none, some})});
  CHECK(found.left_out == std::map<std::string, int>{{"without a figure above 0, to which a share is nothing", 1}});
}

TEST_CASE("claims: shares are of the best of all rows, points only of those that are judged", "[claims]") {
  const NamedResults file =
      made_up_file("a.json", {decode_row("cuda.paged", 128, 1, 100), decode_row("cuda.paged", 128, 16, 80),
                              decode_row("cuda.paged", 128, 256, 40)});
  const Measurement found =
      measured(R"("statistic": "share_of_best", "quantity": "time", "along": "block_size", "better": "lower",
                                         "judged": ["block_size == 16"], "accepted": {"min": 0.95})",
               {file});
  REQUIRE(found.points.size() == 1);
  CHECK(found.points.front().value == Approx(0.5));
}

TEST_CASE("claims: a crossover runs over speed-ups against the counterparts", "[claims]") {
  std::vector<Record> records;
  for (const std::int64_t context : {128, 256, 512, 1024}) {
    records.push_back(decode_row("cuda.contiguous", context, 0, 100));
    records.push_back(decode_row("cuda.paged", context, 16, context <= 256 ? 90 : 110));
  }
  const Measurement found = measured(
      R"("statistic": "crossover", "quantity": "time", "along": "context", "bound": 1, "accepted": {"min": 200},
         "against": {"variant": "cuda.contiguous", "problem": {"block_size": 0}})",
      {made_up_file("a.json", records)});
  REQUIRE(found.points.size() == 1);
  CHECK(found.points.front().value == 256);
}

TEST_CASE("claims: a reciprocal is the scale over the value, a memory of no bytes has none", "[claims]") {
  Record row = decode_row("cuda.paged", 128, 16, 120);
  row.memory_bytes["workspace"] = 64;
  Record other = decode_row("cuda.paged", 256, 16, 120);
  other.memory_bytes["workspace"] = 0;
  const Measurement found =
      measured(R"("statistic": "reciprocal", "scale": 16, "quantity": "memory.workspace", "accepted": {"min": 1})",
               {made_up_file("a.json", {row, other})});
  REQUIRE(found.points.size() == 1);
  CHECK(found.points.front().value == 0.25);
  CHECK(found.left_out == std::map<std::string, int>{{"without the figure", 1}});
}

TEST_CASE("claims: evidence refuses what is no results file, by its path", "[claims]") {
  const auto refusal = [](const Json& json) -> std::string {
    try {
      const Evidence evidence({{.path = "bad.json", .json = json}});
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  CHECK_THAT(refusal(Json{{"schema", "inferometer.sweep/1"}}), contains_text("bad.json: is no results file"));
  CHECK_THAT(refusal(Json::array()), contains_text("bad.json: is no results file"));
  CHECK_THAT(refusal(Json{{"schema", "inferometer.results/1"}}), contains_text("bad.json: "));
  Json odd = made_up_file("bad.json", {decode_row("cuda.paged", 128, 16, 1)}).json;
  odd["rows"][0]["problem"]["context"] = -1;
  CHECK_THAT(refusal(odd), contains_text("bad.json: "));
}

TEST_CASE("claims: a problem from before a field existed has the field's default", "[claims]") {
  NamedResults file =
      made_up_file("a.json", {decode_row("cuda.contiguous", 128, 0, 100), decode_row("cuda.paged", 128, 16, 120)});
  for (Json& row : file.json["rows"]) row["problem"].erase("soft_cap");
  CHECK(measured(kSlower, {file}).points.size() == 1);
}

TEST_CASE("claims: a row of a trace that is on another machine counts, later fields with their defaults", "[claims]") {
  NamedResults file = made_up_file("a.json", {made_up_row("serving", "cuda.static", {})});
  Json& problem = file.json["rows"][0]["problem"];
  problem["trace"] = "on_another_machine.csv";
  const Json later = problem["trace_seed"];
  problem.erase("trace_seed");
  const Evidence evidence({file});
  REQUIRE(evidence.rows().size() == 1);
  problem["trace_seed"] = later;
  CHECK(fields_json(evidence.rows().front().record.problem) == problem);

  // Text alone is taken on trust, and where the operator takes any.
  const auto refusal = [&](const char* field, const Json& value) {
    NamedResults odd = file;
    odd.json["rows"][0]["problem"][field] = value;
    try {
      const Evidence refused({odd});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal("arrivals", "whenever"), contains_text("a.json: arrivals must be one of"));
  CHECK_THAT(refusal("no_such_field", "text"), contains_text("a.json: unknown field"));
  CHECK_THAT(refusal("requests", -1), contains_text("a.json: requests must be"));
}

TEST_CASE("claims: rows of a trace that is on another machine stand against each other", "[claims]") {
  const Record base = made_up_row("serving", "cuda.static", {});
  Record row = made_up_row("serving", "cuda.continuous", {});
  row.timing = decode_row("cuda.paged", 128, 16, 120).timing;
  NamedResults file = made_up_file("a.json", {base, row});
  for (Json& one : file.json["rows"]) one["problem"]["trace"] = "on_another_machine.csv";
  const Evidence evidence({file});
  ClaimPart part;
  part.op = find_operator("serving");
  part.against.emplace();
  part.against->variant = "cuda.static";
  CHECK(counterpart_of(part, evidence.rows().back(), evidence) == &evidence.rows().front());
  part.against->replaced = {{"arrivals", std::string("whenever")}};
  CHECK(counterpart_of(part, evidence.rows().back(), evidence) == nullptr);
}

TEST_CASE("claims: a condition without an answer for a row is refused by its place", "[claims]") {
  CHECK_THROWS_WITH(measured(R"("where": ["context / block_size > 1"], )" + kSlower,
                             {made_up_file("a.json", {decode_row("cuda.paged", 128, 0, 120)})}),
                    contains_text("claims.json: /claims/0/parts/0/where/0: ") && contains_text("division by zero"));
}
