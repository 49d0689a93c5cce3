// From a config to rows: order, zip groups, conditions, baselines, ids, and what the command line changes.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/sweep/config_fixture.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

Sweep parsed(const std::string& members, const SweepOptions& options = {}) {
  return parse_sweep(config_with(members), "c.json", options);
}

constexpr const char* kThreeLengths = R"("axes": {"seq_len": [16, 32, 64], "causal": [false, true]})";

}  // namespace

TEST_CASE("expand: axes multiply, the first slowest, variants side by side", "[sweep]") {
  CHECK(rows_of(R"("axes": {"seq_len": [16, 32], "causal": [true, false]})", {"q_len", "kv_len", "causal"}) ==
        Lines{"cpu.naive: q_len=16 kv_len=16 causal=true", "cpu.flash: q_len=16 kv_len=16 causal=true",
              "cpu.naive: q_len=16 kv_len=16 causal=false", "cpu.flash: q_len=16 kv_len=16 causal=false",
              "cpu.naive: q_len=32 kv_len=32 causal=true", "cpu.flash: q_len=32 kv_len=32 causal=true",
              "cpu.naive: q_len=32 kv_len=32 causal=false", "cpu.flash: q_len=32 kv_len=32 causal=false"});
}

TEST_CASE("expand: without axes there is one problem, the operator's own defaults", "[sweep]") {
  const Sweep sweep = parsed("");
  REQUIRE(sweep.rows.size() == 2);
  CHECK(to_string(sweep.rows[0].problem) ==
        "batch=1 q_heads=1 kv_heads=1 q_len=1 kv_len=1 q_lens=[] kv_lens=[] head_dim=64 v_head_dim=0 block_size=0 "
        "k_row_stride=0 v_row_stride=0 window_left=-1 soft_cap=0.0 causal=false dtype=f16");
}

TEST_CASE("expand: a zip group moves together, groups multiply", "[sweep]") {
  const SweepOptions naive{.variants = {"cpu.naive"}};
  CHECK(rows_of(R"("zip": [{"batch": [4, 2], "seq_len": [16, 32]}, {"q_heads": [8, 4], "kv_heads": [2, 1]}])",
                {"batch", "q_heads", "kv_heads", "q_len"}, naive) ==
        Lines{"cpu.naive: batch=4 q_heads=8 kv_heads=2 q_len=16", "cpu.naive: batch=4 q_heads=4 kv_heads=1 q_len=16",
              "cpu.naive: batch=2 q_heads=8 kv_heads=2 q_len=32", "cpu.naive: batch=2 q_heads=4 kv_heads=1 q_len=32"});
}

TEST_CASE("expand: a zip group replaces fixed fields and axes of its names", "[sweep]") {
  const SweepOptions naive{.variants = {"cpu.naive"}};
  CHECK(
      rows_of(
          R"("fixed": {"batch": 1}, "axes": {"seq_len": [8, 9, 10]}, "zip": [{"batch": [4, 2], "seq_len": [16, 32]}])",
          {"batch", "q_len"}, naive) == Lines{"cpu.naive: batch=4 q_len=16", "cpu.naive: batch=2 q_len=32"});
}

TEST_CASE("expand: conditions keep rows, by problem and by variant", "[sweep]") {
  CHECK(rows_of(
            R"("axes": {"seq_len": [16, 32, 64]}, "where": ["variant != 'cpu.naive' or seq_len <= 16", "q_len != 32"])",
            {"q_len"}) == Lines{"cpu.naive: q_len=16", "cpu.flash: q_len=16", "cpu.flash: q_len=64"});
}

TEST_CASE("expand: conditions may leave out combinations that the operator refuses", "[sweep]") {
  const std::string axes = R"("axes": {"q_heads": [4, 6], "kv_heads": [2, 4]})";
  const SweepOptions naive{.variants = {"cpu.naive"}};
  CHECK(refusal_with(axes).find("q_heads must be a multiple of kv_heads") != std::string::npos);
  CHECK(rows_of(axes + R"(, "where": ["q_heads % kv_heads == 0"])", {"q_heads", "kv_heads"}, naive) ==
        Lines{"cpu.naive: q_heads=4 kv_heads=2", "cpu.naive: q_heads=4 kv_heads=4", "cpu.naive: q_heads=6 kv_heads=2"});
}

TEST_CASE("expand: a row that comes up twice is one row", "[sweep]") {
  CHECK(parsed(R"("zip": [{"seq_len": [16, 16, 32]}])").rows.size() == 4);
}

TEST_CASE("expand: a value twice in an axis is refused with its place", "[sweep]") {
  CHECK(refusal_with(R"("axes": {"seq_len": [16, 32, 16]})").ends_with("/axes/seq_len/2: the value 16 is given twice"));
  CHECK(refusal_with("", {.set = {"seq_len=[16, 16]"}}).ends_with("/1: the value 16 is given twice"));
}

TEST_CASE("expand: globs choose variants, each once, in the config's order", "[sweep]") {
  SweepOptions options{.variants = {"cpu.n*", "cpu.*"}};
  CHECK(rows_of("", {}, options) == Lines{"cpu.naive:", "cpu.flash:"});
  options.variants = {"cpu.?lash"};
  CHECK(rows_of("", {}, options) == Lines{"cpu.flash:"});
  options.variants = {"tpu.*"};
  CHECK(refusal_with("", options).starts_with("--variants: no variant of attention_prefill matches 'tpu.*'"));
}

TEST_CASE("expand: a baseline is the row of its variant with the same problem", "[sweep]") {
  const Sweep sweep = parsed(std::string(kThreeLengths) + R"(, "baseline": "cpu.naive")");
  for (std::size_t i = 0; i < sweep.rows.size(); i += 2) {
    CHECK(sweep.rows[i].baseline_id == sweep.rows[i].id);
    CHECK(sweep.rows[i + 1].baseline_id == sweep.rows[i].id);
  }
  for (const SweepRow& row : parsed(kThreeLengths).rows) CHECK(row.baseline_id.empty());
}

TEST_CASE("expand: a baseline may replace fields of the problem", "[sweep]") {
  const Sweep sweep = parsed(R"("axes": {"causal": [false, true], "batch": [1, 2]},
      "baseline": {"variant": "cpu.naive", "problem": {"causal": false}})");
  std::map<std::string, std::string> id_of;
  const auto key = [](const SweepRow& row) { return row.variant + " " + to_string(row.problem); };
  for (const SweepRow& row : sweep.rows) id_of[key(row)] = row.id;
  REQUIRE(sweep.rows.size() == 8);
  for (const SweepRow& row : sweep.rows) {
    SweepRow baseline = row;
    baseline.variant = "cpu.naive";
    for (auto& [name, value] : baseline.problem)
      if (name == "causal") value = false;
    CHECK(row.baseline_id == id_of.at(key(baseline)));
  }
}

TEST_CASE("expand: where the baseline is left out, rows have none", "[sweep]") {
  const Sweep sweep = parsed(std::string(kThreeLengths) + R"(, "baseline": "cpu.naive",
      "where": ["variant != 'cpu.naive' or q_len == 16"])");
  for (const SweepRow& row : sweep.rows) {
    const bool has_baseline = to_string(row.problem).find("q_len=16 ") != std::string::npos;
    CHECK(row.baseline_id.empty() != has_baseline);
  }
}

TEST_CASE("expand: ids are 12 hex digits, unlike, and the same whatever else the sweep holds", "[sweep]") {
  const Sweep sweep = parsed(kThreeLengths);
  std::set<std::string> ids;
  for (const SweepRow& row : sweep.rows) {
    ids.insert(row.id);
    CHECK(row.id.size() == 12);
    CHECK(row.id.find_first_not_of("0123456789abcdef") == std::string::npos);
    CHECK(row.id == row_id(row.operator_name, row.variant, row.problem));
    CHECK(row.id == row_id(row.operator_name, row.variant, Fields(row.problem.rbegin(), row.problem.rend())));
  }
  CHECK(ids.size() == sweep.rows.size());
  CHECK(parsed(R"("fixed": {"q_len": 64, "kv_len": 64, "causal": true})").rows[0].id == sweep.rows[10].id);
  // Recorded results carry ids: they must never change. sha256sum of the lines operator, variant, sorted fields.
  CHECK(row_id("op", "cpu.a", {{"n", std::int64_t{2}}, {"b", true}}) == "cc046352f4ec");
}

TEST_CASE("expand: too many rows are refused before they are made", "[sweep]") {
  SweepOptions options;
  std::string list = "[1";
  for (int i = 2; i <= 2000; ++i) list += "," + std::to_string(i);
  for (const char* name : {"batch=", "q_len=", "kv_len="}) options.set.push_back(name + list + "]");
  CHECK(refusal_with("", options) == "c.json: axes, zip groups and variants make more than 1000000 rows");
}

TEST_CASE("options: --set fixes a field, makes an axis, or changes measure and limits", "[sweep][options]") {
  const SweepOptions fixed{.set = {"seq_len=48"}, .variants = {"cpu.naive"}};
  CHECK(rows_of(kThreeLengths, {"q_len", "causal"}, fixed) ==
        Lines{"cpu.naive: q_len=48 causal=false", "cpu.naive: q_len=48 causal=true"});
  const SweepOptions axis{.set = {"dtype=[\"f16\",\"bf16\"]", "causal=true", "seq_len=8"}, .variants = {"cpu.naive"}};
  CHECK(rows_of(kThreeLengths, {"causal", "dtype"}, axis) ==
        Lines{"cpu.naive: causal=true dtype=f16", "cpu.naive: causal=true dtype=bf16"});
  const SweepOptions word{
      .set = {"dtype=bf16", "measure.cache=warm", "measure.min_samples=5", "limits.row_seconds=1.5"}};
  const Sweep sweep = parsed("", word);
  CHECK(to_string(sweep.rows[0].problem).ends_with("dtype=bf16"));
  CHECK(sweep.measure.cache == CacheMode::warm);
  CHECK(sweep.measure.min_samples == 5);
  CHECK(sweep.limits.row_seconds == 1.5);
}

TEST_CASE("options: --set takes a field out of its zip group, and an alias replaces its fields", "[sweep][options]") {
  const SweepOptions batch{.set = {"batch=7"}, .variants = {"cpu.naive"}};
  CHECK(rows_of(R"("zip": [{"batch": [4, 2], "seq_len": [16, 32]}])", {"batch", "q_len"}, batch) ==
        Lines{"cpu.naive: batch=7 q_len=16", "cpu.naive: batch=7 q_len=32"});
  const SweepOptions alias{.set = {"seq_len=5"}, .variants = {"cpu.naive"}};
  CHECK(rows_of(R"("fixed": {"q_len": 1, "kv_len": 2})", {"q_len", "kv_len"}, alias) ==
        Lines{"cpu.naive: q_len=5 kv_len=5"});
  CHECK(refusal_with(kThreeLengths, {.set = {"q_len=5"}}) ==
        "--set q_len=5: the field 'q_len' is given twice, also by c.json: /axes/seq_len");
}

TEST_CASE("options: a list field takes a list as one value, a list of lists as an axis", "[sweep][options]") {
  const std::string config = R"({"schema": "inferometer.sweep/1", "name": "t", "operator": "attention_decode",
                                 "variants": ["cpu.naive"], "fixed": {"batch": 2}})";
  CHECK(parse_sweep(config, "c.json", {.set = {"contexts=[5,7]"}}).rows.size() == 1);
  CHECK(parse_sweep(config, "c.json", {.set = {"contexts=[[5,7],[1,2]]"}}).rows.size() == 2);
}

TEST_CASE("options: --set with a mistake names it", "[sweep][options]") {
  CHECK(refusal_with("", {.set = {"batch"}}) == "--set batch: must be KEY=VALUE");
  CHECK(refusal_with("", {.set = {"=1"}}) == "--set =1: must be KEY=VALUE");
  CHECK(refusal_with("", {.set = {"bacth=1"}}).starts_with("--set bacth=1: unknown key 'bacth', nearest is 'batch'"));
  CHECK(refusal_with("", {.set = {"measure.min_sample=1"}}).find("nearest is 'measure.min_samples'") !=
        std::string::npos);
  CHECK(refusal_with("", {.set = {"batch=[1,"}}).starts_with("--set batch=[1,:1:"));
  CHECK(refusal_with("", {.set = {"batch=x"}}).starts_with("--set batch=x: batch must be an integer"));
  CHECK(refusal_with("", {.set = {"batch=[1,0]"}}).starts_with("--set batch=[1,0]/1: batch must be an integer"));
  CHECK(refusal_with("", {.set = {"measure.max_samples=2"}}).find("must not exceed") != std::string::npos);
}

TEST_CASE("options: --filter keeps rows by field and variant", "[sweep][options]") {
  CHECK(rows_of(kThreeLengths, {"q_len"}, {.filter = "variant == 'cpu.flash' and seq_len > 16 and not causal"}) ==
        Lines{"cpu.flash: q_len=32", "cpu.flash: q_len=64"});
  CHECK(refusal_with("", {.filter = "batch = 1"}) == "--filter: column 7: '=' is not known here; write '=='");
  CHECK(refusal_with("", {.filter = "batch > 1"}).find("no row is left") != std::string::npos);
}

TEST_CASE("options: --row takes an id or what only one id begins with", "[sweep][options]") {
  const Sweep all = parsed(kThreeLengths);
  const std::string id = all.rows[3].id;
  REQUIRE(parsed(kThreeLengths, {.row = id}).rows.size() == 1);
  CHECK(parsed(kThreeLengths, {.row = id}).rows[0].id == id);
  CHECK(parsed(kThreeLengths, {.row = id.substr(0, 8)}).rows[0].id == id);
  CHECK(refusal_with(kThreeLengths, {.row = "nothing"}).starts_with("--row nothing: no row has this id"));
  std::map<char, int> first_digits;
  for (const SweepRow& row : all.rows) ++first_digits[row.id[0]];
  for (const auto& [digit, count] : first_digits)
    if (count > 1)
      CHECK(refusal_with(kThreeLengths, {.row = std::string(1, digit)}).find("begins the ids of") != std::string::npos);
  // Alone, it has no baseline to be compared with.
  const std::string with_baseline = std::string(kThreeLengths) + R"(, "baseline": "cpu.naive")";
  CHECK(parsed(with_baseline, {.row = all.rows[1].id}).rows[0].baseline_id.empty());
  CHECK(parsed(with_baseline, {.row = all.rows[0].id}).rows[0].baseline_id == all.rows[0].id);
}

TEST_CASE("options: --row takes the id of files from before a field came, whose default they ran with",
          "[sweep][options]") {
  const std::vector<SweepRow> rows = parsed(kThreeLengths).rows;
  const SweepRow& row = rows[3];
  const auto id_without = [&](const std::string& name) {
    Fields problem = row.problem;
    std::erase_if(problem, [&](const auto& field) { return field.first == name; });
    return row_id(row.operator_name, row.variant, problem);
  };
  const Sweep found = parsed(kThreeLengths, {.row = id_without("soft_cap")});
  REQUIRE(found.rows.size() == 1);
  CHECK(found.rows[0].id == row.id);
  const Sweep full = parsed(kThreeLengths, {.row = id_without("causal")});
  REQUIRE(full.rows.size() == 1);
  CHECK(full.rows[0].id == rows[1].id);  // the one with the default; `row` is causal
  CHECK(refusal_with(kThreeLengths, {.row = id_without("soft_cap").substr(0, 11)}).find("no row has this id") !=
        std::string::npos);
}

TEST_CASE("options: --quick keeps the ends of axes and zip groups, and measures loosely", "[sweep][options]") {
  const std::string members =
      R"("axes": {"seq_len": [16, 32, 64]}, "zip": [{"q_heads": [2, 4, 8], "kv_heads": [1, 2, 4]}],
                                 "measure": {"min_samples": 100, "max_samples": 1000})";
  const SweepOptions quick{.variants = {"cpu.naive"}, .quick = true};
  CHECK(rows_of(members, {"q_heads", "q_len"}, quick) ==
        Lines{"cpu.naive: q_heads=2 q_len=16", "cpu.naive: q_heads=8 q_len=16", "cpu.naive: q_heads=2 q_len=64",
              "cpu.naive: q_heads=8 q_len=64"});
  const Sweep sweep = parsed(members, quick);
  CHECK(sweep.measure.min_samples == 10);
  CHECK(sweep.measure.max_samples == 100);
  CHECK(sweep.measure.max_seconds == 0.2);
  CHECK(sweep.measure.relative_ci == 0.02);
  CHECK(parsed(members, {.set = {"measure.min_samples=3"}, .quick = true}).measure.min_samples == 3);
}

TEST_CASE("options: the config's fingerprint follows what is run, not how it is written", "[sweep][options]") {
  const std::string hash = parsed(kThreeLengths).config_sha256;
  CHECK(hash.size() == 64);
  CHECK(parse_sweep("  " + config_with(kThreeLengths) + "\n", "other.json", {}).config_sha256 == hash);
  CHECK(parsed(kThreeLengths, {.row = parsed(kThreeLengths).rows[0].id}).config_sha256 == hash);
  for (const SweepOptions& options : {SweepOptions{.set = {"batch=2"}}, SweepOptions{.variants = {"cpu.naive"}},
                                      SweepOptions{.filter = "causal"}, SweepOptions{.quick = true}})
    CHECK(parsed(kThreeLengths, options).config_sha256 != hash);
  CHECK(parsed(R"("axes": {"seq_len": [16, 32]})").config_sha256 != hash);
}

TEST_CASE("expand: fields of words and of numbers make axes, conditions, settings and baselines", "[sweep]") {
  const std::string config = R"({"schema": "inferometer.sweep/1", "name": "t", "operator": "attention_decode",
    "variants": ["cpu.naive"], "baseline": {"variant": "cpu.naive", "problem": {"kv_format": "integer", "soft_cap": 0}},
    "fixed": {"context": 64, "kv_bits": 8},
    "axes": {"kv_format": ["integer", "fp8_e4m3"], "soft_cap": [0, 12.5, 50]},
    "where": ["soft_cap < 20.5", "kv_format == 'integer' or soft_cap > 0"]})";
  const auto rows = [&](const SweepOptions& options) {
    Lines lines;
    for (const SweepRow& row : parse_sweep(config, "c.json", options).rows)
      for (const auto& [name, value] : row.problem)
        if (name == "kv_format" || name == "soft_cap") lines.push_back(name + "=" + to_string(value));
    return lines;
  };
  CHECK(rows({}) == Lines{"kv_format=integer", "soft_cap=0.0", "kv_format=integer", "soft_cap=12.5",
                          "kv_format=fp8_e4m3", "soft_cap=12.5"});
  CHECK(rows({.set = {"soft_cap=[0, 3]", "kv_format=fp8_e4m3"}}) == Lines{"kv_format=fp8_e4m3", "soft_cap=3.0"});
  // An integer and the same number are one problem; so is 0 and -0.
  const Sweep once = parse_sweep(config, "c.json", {.set = {"soft_cap=[3, 3.0]"}});
  CHECK(once.rows.size() == 2);
  CHECK(parse_sweep(config, "c.json", {.set = {"soft_cap=[0, -0.0]"}}).rows.size() == 1);
  const Sweep sweep = parse_sweep(config, "c.json", {});
  for (const SweepRow& row : sweep.rows) CHECK(row.baseline_id == sweep.rows.front().id);

  CHECK(refusal(config, {.set = {"kv_format=fp8_e5m2"}}) ==
        "--set kv_format=fp8_e5m2: kv_format must be one of integer, fp8_e4m3, got 'fp8_e5m2', nearest is 'fp8_e4m3' "
        "(context=64 kv_bits=8 kv_format=fp8_e5m2 soft_cap=12.5)");
  CHECK(refusal(config, {.set = {"soft_cap=high"}}).find("soft_cap must be a number from 0.0 to 1e+06, got 'high'") !=
        std::string::npos);
  CHECK(refusal(config, {.filter = "kv_format == 'fp8'"}) ==
        "--filter: column 14: unknown kv_format 'fp8', nearest is 'fp8_e4m3'; allowed: integer, fp8_e4m3");
  // A value the operator refuses may be left out by a condition, an integer for a number too.
  CHECK(rows({.set = {"soft_cap=[0, 2000000]"}, .filter = "soft_cap < 1000"}) ==
        Lines{"kv_format=integer", "soft_cap=0.0"});
}
