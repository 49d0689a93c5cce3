#include "harness/results/table.hpp"

#include <algorithm>
#include <ctime>
#include <sstream>

#include "harness/results/progress.hpp"
#include "harness/results/terminal.hpp"
#include "tests/harness/results/sample_record.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using inferometer::test::sample_record;

namespace {

struct Example {
  Sweep sweep;
  RecordsById records;

  void add(const std::string& id, std::int64_t seq_len, Status status, const std::string& reason) {
    Record record = sample_record();
    record.id = id;
    record.problem = {{"batch", std::int64_t{8}}, {"seq_len", seq_len}};
    record.status = status;
    record.reason = reason;
    record.timing->isolated.flags.clear();
    if (status != Status::ok) record.timing.reset();
    if (status != Status::ok) record.rates.reset();
    sweep.operator_name = record.operator_name;
    sweep.rows.push_back({.id = id,
                          .operator_name = record.operator_name,
                          .variant = record.variant,
                          .problem = record.problem,
                          .baseline_id = "a"});
    records[id] = record;
  }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("table: fields that vary are columns, the others stand once above", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.add("b", 16384, Status::crashed, "killed by SIGSEGV in phase check");
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0] == "attention_prefill: batch 8");
  CHECK(lines[1] == "variant          seq_len     time     +-          rate      ceiling  speedup    error  status");
  CHECK(lines[2] == "cuda.flash_sm80      512  80.0 us  1.0 %  50.0 TFLOP/s  7 % compute    1.00x  3.0e-04  ok");
  CHECK(lines[3] ==
        "cuda.flash_sm80    16384        -      -             -            -        -  3.0e-04  "
        "crashed: killed by SIGSEGV in phase check");
}

TEST_CASE("table: a field that only some rows have is a column", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.add("b", 512, Status::ok, "");
  example.sweep.rows.back().problem.emplace_back("splits", std::int64_t{4});
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  CHECK(lines[0] == "attention_prefill: batch 8, seq_len 512");
  CHECK(lines[1].starts_with("variant          splits  "));
  CHECK(lines[2].starts_with("cuda.flash_sm80       -  "));
  CHECK(lines[3].starts_with("cuda.flash_sm80       4  "));
}

TEST_CASE("table: headline metrics stand behind the speed-up", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.add("b", 512, Status::ok, "");
  example.sweep.operator_name = "attention_decode";
  example.records.at("b").metrics = {{"quantization_rel_error", 0.012}, {"quantization_rel_error_keys", 0.02}};
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] == std::string(69, ' ') + "quantization");
  CHECK(lines[2] ==
        "variant             time     +-          rate      ceiling  speedup     rel error    error  status");
  CHECK(lines[3] == "cuda.flash_sm80  80.0 us  1.0 %  50.0 TFLOP/s  7 % compute    1.00x             -  3.0e-04  ok");
  CHECK(lines[4] == "cuda.flash_sm80  80.0 us  1.0 %  50.0 TFLOP/s  7 % compute    1.00x       1.2e-02  3.0e-04  ok");
}

TEST_CASE("table: without a speed-up there is no column for it, without an interval no width", "[results][table]") {
  Example example;
  example.add("b", 512, Status::ok, "");  // its baseline was not measured
  IsolatedTiming& timing = example.records.at("b").timing->isolated;
  timing.ci_low_ns = timing.ci_high_ns = timing.ci_half_width_ratio = std::nullopt;
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "variant             time  +-          rate      ceiling    error  status");
  CHECK(lines[2] == "cuda.flash_sm80  80.0 us   -  50.0 TFLOP/s  7 % compute  3.0e-04  ok");
}

TEST_CASE("table: what was noted while a row was timed stands beside its status", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.add("b", 512, Status::ok, "");
  IsolatedTiming& timing = example.records.at("b").timing->isolated;
  timing.samples = 3;
  timing.flags = {"power_limited", "few_samples"};
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 4);
  CHECK(lines[2].ends_with("  ok"));
  CHECK(lines[3].ends_with("  ok (power_limited, 3 samples)"));
}

TEST_CASE("table: a warm cache in a cold sweep is said with a ceiling and without", "[results][table]") {
  Example example;
  for (const char* id : {"a", "b", "c"}) example.add(id, 512, Status::ok, "");
  for (const char* id : {"b", "c"}) {
    Timing& timing = *example.records.at(id).timing;
    timing.headline = "amortized";
    timing.amortized->cache = CacheMode::warm;
  }
  example.records.at("c").rates->fraction_of_ceiling.reset();
  const std::string text = result_table(example.sweep, example.records, false, 0);
  INFO(text);
  const auto lines = lines_of(text);
  REQUIRE(lines.size() == 5);
  CHECK(lines[2].find("warm") == std::string::npos);
  CHECK(lines[3].find("  7 % compute, warm  ") != std::string::npos);
  CHECK(lines[4].find("  warm cache  ") != std::string::npos);
}

TEST_CASE("table: in a warm sweep every cache is warm, and a ceiling stands alone", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.records.at("a").timing->isolated.cache = CacheMode::warm;
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 3);
  CHECK(lines[2].find("7 % compute  ") != std::string::npos);
}

TEST_CASE("table: the metrics of a simulation come first, and columns that it leaves empty go", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.add("b", 512, Status::error, "no such trace");
  example.sweep.operator_name = "kv_memory";
  for (auto& [id, record] : example.records) {
    record.work = Work{};
    record.rates.reset();
    record.metrics.clear();
  }
  Record& ok = example.records.at("a");
  ok.timing->amortized.reset();
  ok.timing->isolated.cache = CacheMode::warm;
  ok.metrics = {{"steps", 40}, {"preemptions", 3}, {"kv_token_share_of_allocated_ratio", 0.931}};
  const auto lines = lines_of(result_table(example.sweep, example.records, false, 0));
  REQUIRE(lines.size() == 5);
  CHECK(lines[1] == "                 kv token share");
  CHECK(lines[2] == "variant            of allocated  preemptions  run time     +-    error  status");
  CHECK(lines[3] == "cuda.flash_sm80          93.1 %            3   80.0 us  1.0 %  3.0e-04  ok");
  CHECK(lines[4] == "cuda.flash_sm80               -            -         -      -  3.0e-04  error: no such trace");
}

TEST_CASE("table: a default that the sweep does not name is not in the heading", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  example.sweep.rows.front().problem.emplace_back("causal", false);
  CHECK(lines_of(result_table(example.sweep, example.records, false, 0))[0] ==
        "attention_prefill: batch 8, seq_len 512");
  example.sweep.config_text = R"({"fixed": {"causal": false}} // a comment)";
  CHECK(lines_of(result_table(example.sweep, example.records, false, 0))[0] ==
        "attention_prefill: batch 8, seq_len 512, causal false");
}

TEST_CASE("table: its time grows with the number of rows, not with its square", "[results][table]") {
  constexpr int kRows = 100'000;
  Example example;
  for (int i = 0; i < kRows; ++i) example.add(i == 0 ? "a" : std::to_string(i), 512, Status::ok, "");
  // A field of the same value in all rows has to be looked at in all of them: once, not once for each.
  for (SweepRow& row : example.sweep.rows) row.problem.emplace_back("shared", std::int64_t{1});
  example.sweep.rows.back().problem.back().second = std::int64_t{2};
  const std::clock_t start = std::clock();  // of processor time, which other programs hardly move
  const std::string text = result_table(example.sweep, example.records, false, 0);
  // 0.4 s where this was written, and minutes when each row looks at all others; a sanitizer build takes 5 times it.
  CHECK(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC < 10);
  CHECK(std::count(text.begin(), text.end(), '\n') == kRows + 2);
}

TEST_CASE("table: a reason is cut to the terminal, never within a character", "[results][table]") {
  Example example;
  example.add("a", 512, Status::error, "größer als erlaubt: " + std::string(100, 'x'));
  for (std::size_t columns = 90; columns < 140; ++columns)
    for (const std::string& line : lines_of(result_table(example.sweep, example.records, false, columns)))
      CHECK(columns_of(line) <= columns);
  CHECK(shortened("größer", 5) == "gr...");
  CHECK(shortened("größer", 6) == "größer");
}

TEST_CASE("table: colour only when asked for", "[results][table]") {
  Example example;
  example.add("a", 512, Status::ok, "");
  CHECK(result_table(example.sweep, example.records, false, 0).find('\x1b') == std::string::npos);
  CHECK(result_table(example.sweep, example.records, true, 0).find("\x1b[32mok\x1b[0m") != std::string::npos);
}

TEST_CASE("table: three figures in a fitting unit", "[results][table]") {
  CHECK(shown_time(0.5) == "0.50 ns");
  CHECK(shown_time(999.96) == "1.00 us");
  CHECK(shown_time(81234) == "81.2 us");
  CHECK(shown_time(123456789) == "123 ms");
  CHECK(shown_time(4.2e9) == "4.20 s");
  CHECK(shown_rate({.flops_per_s = 5.2e13, .bytes_per_s = 2e11, .limit = "compute", .fraction_of_ceiling = 0.1}) ==
        "52.0 TFLOP/s");
  CHECK(shown_rate({.flops_per_s = 5.2e13, .bytes_per_s = 3.91e12, .limit = "memory", .fraction_of_ceiling = 0.1}) ==
        "3.91 TB/s");
}

TEST_CASE("progress: plain lines where there is no terminal, none when quiet", "[results][progress]") {
  const bool quiet = GENERATE(false, true);
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  {
    Progress progress(file, 2, quiet);
    progress.row_started("matmul/cpu.eigen m=1");
    progress.phase("measure");
    progress.tick();
    progress.row_finished(sample_record());
    progress.message("a message");
  }
  std::rewind(file);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  CHECK(text == (quiet ? "a message\n" : "[1/2] matmul/cpu.eigen m=1 ok 80.0 us\na message\n"));
}
