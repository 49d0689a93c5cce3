#include "harness/claims/verdict.hpp"

#include "harness/claims/claims_report.hpp"
#include "harness/claims/part_text.hpp"
#include "harness/claims/shapes.hpp"
#include "tests/harness/claims/made_up.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

// Paged rows that take `slowdowns` times as long as contiguous ones, at contexts of 128, 256, 512, ...
NamedResults slower_by(const std::vector<double>& slowdowns, const std::string& path = "a.json",
                       const std::string& gpu = "some GPU") {
  std::vector<Record> records;
  std::int64_t context = 128;
  for (const double slowdown : slowdowns) {
    records.push_back(decode_row("cuda.contiguous", context, 0, 100));
    records.push_back(decode_row("cuda.paged", context, 16, 100 * slowdown));
    context *= 2;
  }
  return made_up_file(path, records, gpu);
}

JudgedClaim judged_by(const std::vector<NamedResults>& files) {
  return judge(one_part_claim(kSlowdown + R"(, "accepted": {"min": 1.15, "max": 1.3}, "claimed": "20 to 26 %")"),
               Evidence(files));
}

JudgedPart part_with(ClaimVerdict verdict, PartRole role = PartRole::decides) {
  JudgedPart part;
  part.part.role = role;
  part.verdict = verdict;
  return part;
}

}  // namespace

TEST_CASE("claims: all, some or none of the points inside make the verdict, no point makes none", "[claims]") {
  CHECK(judged_by({slower_by({1.2, 1.25})}).verdict == ClaimVerdict::holds);
  CHECK(judged_by({slower_by({1.2, 1.05})}).verdict == ClaimVerdict::holds_in_part);
  CHECK(judged_by({slower_by({1.0, 1.5})}).verdict == ClaimVerdict::does_not_hold);
  CHECK(judged_by({}).verdict == ClaimVerdict::not_tested);
  CHECK(verdict_name(ClaimVerdict::holds) == "holds");
  CHECK(verdict_name(ClaimVerdict::holds_in_part) == "holds in part");
  CHECK(verdict_name(ClaimVerdict::does_not_hold) == "does not hold");
  CHECK(verdict_name(ClaimVerdict::not_tested) == "not tested here");
}

TEST_CASE("claims: a claim holds if every deciding part was tested and holds", "[claims]") {
  using enum ClaimVerdict;
  CHECK(combined_verdict({part_with(holds), part_with(holds)}) == holds);
  CHECK(combined_verdict({part_with(holds), part_with(does_not_hold)}) == holds_in_part);
  CHECK(combined_verdict({part_with(holds_in_part)}) == holds_in_part);
  CHECK(combined_verdict({part_with(holds), part_with(not_tested)}) == holds_in_part);
  CHECK(combined_verdict({part_with(does_not_hold), part_with(not_tested)}) == does_not_hold);
  CHECK(combined_verdict({part_with(not_tested), part_with(not_tested)}) == not_tested);
}

TEST_CASE("claims: a part that counts only if tested changes nothing by its absence, one beside never", "[claims]") {
  using enum ClaimVerdict;
  CHECK(combined_verdict({part_with(holds), part_with(not_tested, PartRole::if_tested)}) == holds);
  CHECK(combined_verdict({part_with(holds), part_with(does_not_hold, PartRole::if_tested)}) == holds_in_part);
  CHECK(combined_verdict({part_with(not_tested), part_with(holds, PartRole::if_tested)}) == holds_in_part);
  CHECK(combined_verdict({part_with(holds), part_with(does_not_hold, PartRole::beside)}) == holds);
  CHECK(combined_verdict({part_with(not_tested), part_with(holds, PartRole::beside)}) == not_tested);
}

TEST_CASE("claims: the reason is made of the figures", "[claims]") {
  CHECK(judged_by({slower_by({1.2, 1.05, 1.1})}).reason ==
        "the part: 1.15x to 1.30x at 1 of 3 cases, measured 1.05x to 1.20x, median 1.10x");
  CHECK(judged_by({}).reason == "not tested here: the part (experiments/attention_decode.json)");
  CHECK_THAT(judged_by({slower_by({1.155})}).reason, contains_text("(1 within the error of a bound)"));
}

TEST_CASE("claims: where it holds is told by the field that parts the points", "[claims]") {
  const JudgedClaim judged = judged_by({slower_by({1.2, 1.25, 1.05, 1.0})});
  CHECK(where_text(judged.parts.front()) == "by context: 128 to 256 at 2 of 2, 512 to 1024 at 0 of 2");
  CHECK(where_text(judged_by({slower_by({1.2, 1.25})}).parts.front()) == "context 128 or 256");
  CHECK(where_text(judged_by({slower_by({1.2})}).parts.front()).empty());
}

TEST_CASE("claims: on two devices the device may part the points", "[claims]") {
  const JudgedClaim judged =
      judged_by({slower_by({1.2, 1.25}, "a.json", "GPU A"), slower_by({1.0, 1.0}, "b.json", "GPU B")});
  CHECK(judged.verdict == ClaimVerdict::holds_in_part);
  CHECK(where_text(judged.parts.front()) == "by device: GPU A at 2 of 2, GPU B at 0 of 2");
  CHECK(judged.files.size() == 2);
}

TEST_CASE("claims: a verdict from simulated rows says so", "[claims]") {
  NamedResults file = slower_by({1.2});
  for (Json& row : file.json["rows"]) row["metrics"]["simulated"] = 1.0;
  const JudgedClaim judged = judged_by({file});
  CHECK(judged.evidence == EvidenceKind::simulated);
  CHECK(shown_verdict(judged) == "holds (simulated)");
  CHECK_THAT(judged.reason, contains_text("simulated 1.20x"));
  CHECK(shown_verdict(judged_by({slower_by({1.2})})) == "holds");
  CHECK(judged_by({}).evidence == EvidenceKind::none);
}

TEST_CASE("claims: the text names claim, verdict, interval, rows that do not count, file and commit", "[claims]") {
  NamedResults file = slower_by({1.2, 1.05});
  file.json["rows"].push_back(record_json(failed(decode_row("cuda.paged", 8192, 16, 1), Status::incorrect)));
  const Evidence evidence({file});
  const std::vector<JudgedClaim> claims{judged_by({file})};
  const std::string text = claims_text(claims, evidence, 200);
  for (const char* wanted :
       {"one: holds in part", "It is so", "a paper", "1.05x to 1.20x, over 2 cases; each +- 2.0 % (95 %) or less",
        "accepted 1.15x to 1.30x; claimed 20 to 26 %", "counted: 1 row incorrect",
        "a.json (commit 0123456789, some GPU, 2026-11-30)"})
    CHECK_THAT(text, contains_text(wanted));
}

TEST_CASE("claims: a ratio between rows of two devices is named as such", "[claims]") {
  Record contiguous = decode_row("cuda.contiguous", 128, 0, 100);
  Record paged = decode_row("cuda.paged", 128, 16, 120);
  Record later_contiguous = decode_row("cuda.contiguous", 256, 0, 100);
  Record later_paged = decode_row("cuda.paged", 256, 16, 125);
  for (Record* record : {&contiguous, &paged, &later_contiguous, &later_paged}) record->device = "GPU-a";
  const auto judged = [&] {
    return judged_by({made_up_file("a.json", {contiguous, paged, later_contiguous, later_paged})});
  };
  CHECK(shown_measured(judged().parts.front()).find("two devices") == std::string::npos);
  paged.device.clear();  // older files do not say
  CHECK(shown_measured(judged().parts.front()).find("two devices") == std::string::npos);
  paged.device = "GPU-b";
  CHECK_THAT(shown_measured(judged().parts.front()), contains_text("or less; 1 of them between two devices"));
  CHECK_THAT(judged().reason, contains_text("measured 1.20x to 1.25x, 1 of them between two devices"));
  later_paged.device = "GPU-b";
  CHECK_THAT(shown_measured(judged().parts.front()), contains_text("or less; between two devices"));
  CHECK(judged().verdict == ClaimVerdict::holds);
}

TEST_CASE("claims: Markdown has a line for each claim, and its files as links", "[claims]") {
  const NamedResults file = slower_by({1.2}, "results/gpu/a.json");
  const std::string text = claims_markdown({judged_by({file}), judged_by({})}, Evidence({file}));
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);
  CHECK_THAT(text, contains_text("| It is so | **holds** | the part: 1.15x to 1.30x at 1 of 1 case, measured 1.20x | "
                                 "[a](results/gpu/a.json) |"));
  CHECK_THAT(text, contains_text("| **not tested here** | the part: not tested here"));
}

TEST_CASE("claims: JSON holds every point with its interval, problem and file", "[claims]") {
  const NamedResults file = slower_by({1.2, 1.05});
  const Json json = claims_json({judged_by({file})}, Evidence({file}));
  CHECK(json.at("schema") == "inferometer.claims_report/1");
  const Json& claim = json.at("claims").at(0);
  CHECK(claim.at("verdict") == "holds in part");
  CHECK(claim.at("evidence") == "measured");
  CHECK(claim.at("files") == Json::array({"a.json"}));
  const Json& point = claim.at("parts").at(0).at("points").at(0);
  CHECK(point.at("value").get<double>() == Approx(1.2));
  CHECK(point.at("ci").at(0).get<double>() < 1.2);
  CHECK(point.at("problem").at("context") == 128);
  CHECK(point.at("inside") == true);
  CHECK(point.at("file") == "a.json");
}

TEST_CASE("claims: rows that cost the exit code are counted, a line for each file that has any", "[claims]") {
  Record suspect = decode_row("cuda.paged", 128, 16, 100);
  suspect.status = Status::suspect;
  Record other = decode_row("cuda.paged", 256, 16, 100);
  other.status = Status::suspect;
  const Record crashed = failed(decode_row("cuda.paged", 512, 16, 1), Status::crashed);
  const Record unsupported = failed(decode_row("cuda.paged", 1024, 16, 1), Status::unsupported);
  CHECK(failures_text({slower_by({1.2}), made_up_file("b.json", {unsupported})}).empty());
  CHECK(failures_text({slower_by({1.2}), made_up_file("folder/b.json", {suspect, unsupported, other, crashed})}) ==
        "1 row of b.json is crashed, 2 suspect: exit code 1\n");
  CHECK(failures_text({made_up_file("b.json", {suspect, other}), made_up_file("c.json", {suspect})}) ==
        "2 rows of b.json are suspect: exit code 1\n1 row of c.json is suspect: exit code 1\n");
}

TEST_CASE("claims: rows that other programs interrupted are counted where their time counts", "[claims]") {
  Record interrupted = decode_row("cpu.naive", 128, 16, 100);
  interrupted.timing->isolated.flags = {"interrupted"};
  interrupted.work = Work{.flops = 1, .bytes = 1};
  Record simulation = interrupted;
  simulation.work = Work{};
  CHECK(interruptions_text({slower_by({1.2}), made_up_file("b.json", {simulation})}).empty());
  CHECK_THAT(interruptions_text({made_up_file("folder/b.json", {interrupted, simulation})}),
             contains_text("Other programs interrupted 1 row of b.json: verdicts"));
  CHECK_THAT(interruptions_text({made_up_file("b.json", {interrupted, interrupted}), slower_by({1.2}),
                                 made_up_file("c.json", {interrupted})}),
             contains_text("Other programs interrupted 3 rows of b.json, c.json: verdicts"));
}
