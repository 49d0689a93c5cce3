// The published traces, where they are at hand: their statistics as this reader sees them, and what an endless cache
// finds again in their prompts.
#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "tests/reference/kv_memory/kv_memory_runs.hpp"
#include "tests/support/real_traces.hpp"

using namespace inferometer;

namespace {

struct Lengths {
  double mean;
  std::int64_t p50, p90, p99, max;
};

struct Trace {
  const char* name;
  std::size_t rows;
  Lengths in;
  Lengths out;
  double span_s;  // 0: without times
};

// As measured on these files by other means.
const Trace kTraces[] = {
    {"azure_llm_2023_code.csv", 8819, {2047.8, 1469, 5188, 7436, 7437}, {27.9, 13, 55, 251, 1899}, 3436},
    {"azure_llm_2023_conv.csv", 19366, {1154.7, 1020, 2734, 4142, 14050}, {211.1, 129, 424, 601, 1000}, 3502},
    {"mooncake_fast25_synthetic.jsonl", 3993, {15325.5, 11587, 38611, 66456, 191378}, {149.1, 69, 389, 768, 893}, 1022},
    {"mooncake_fast25_conversation_first6000.jsonl",
     6000,
     {12773.9, 7594, 28548, 91308, 123192},
     {347.0, 356, 609, 1137, 2000},
     1872},
    {"arxiv_summarization_lengths_first10000.csv",
     10000,
     {2573.4, 2711, 3702, 3931, 4046},
     {300.2, 166, 377, 3332, 4056},
     0},
    {"arxiv_long_offline_lengths.csv", 427, {87426, 78967, 119386, 169372, 192786}, {427.6, 345, 700, 2608, 5153}, 0},
};

void check_lengths(std::vector<std::int64_t> values, const Lengths& expected) {
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const std::int64_t value : values) sum += static_cast<double>(value);
  CHECK(sum / static_cast<double>(values.size()) == Approx(expected.mean).margin(expected.mean < 1e4 ? 0.05 : 0.5));
  // Quantiles by other rules lie a rank away.
  const auto near = [&](double q, std::int64_t quantile) {
    const auto rank = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
    const auto low = values[rank > 0 ? rank - 1 : 0];
    const auto high = values[std::min(rank + 2, values.size() - 1)];
    CHECK(low <= quantile);
    CHECK(quantile <= high);
  };
  near(0.5, expected.p50);
  near(0.9, expected.p90);
  near(0.99, expected.p99);
  CHECK(values.back() == expected.max);
}

}  // namespace

TEST_CASE("kv_memory real traces: rows, lengths and spans are those known of the files", "[kv_memory][real]") {
  for (const Trace& trace : kTraces) {
    const std::string path = test::real_trace(trace.name);
    if (path.empty()) continue;
    CAPTURE(trace.name);
    const auto source =
        open_requests({.trace = path, .requests = 0, .arrivals = trace.span_s > 0 ? "trace" : "all_at_start"});
    std::vector<std::int64_t> in;
    std::vector<std::int64_t> out;
    KvRequest request;
    while (source->next(request)) {
      in.push_back(request.prompt);
      out.push_back(request.output);
    }
    CHECK(in.size() == trace.rows);
    if (trace.span_s > 0) CHECK(request.arrival_ms / 1000 == Approx(trace.span_s).margin(1));
    check_lengths(in, trace.in);
    check_lengths(out, trace.out);
  }
}

TEST_CASE("kv_memory real traces: an endless cache finds 64.0 % and 34.6 % of the prompt blocks again",
          "[kv_memory][real]") {
  struct Reuse {
    const char* name;
    double blocks;  // published: of all prompt blocks, the last, partly filled ones included
  };
  for (const Reuse& reuse : {Reuse{"mooncake_fast25_synthetic.jsonl", 0.640},
                             Reuse{"mooncake_fast25_conversation_first6000.jsonl", 0.346}}) {
    const std::string path = test::real_trace(reuse.name);
    if (path.empty()) continue;
    CAPTURE(reuse.name);
    const auto source = open_requests({.trace = path, .requests = 0});
    std::set<std::int64_t> seen;
    std::int64_t blocks = 0;
    for (KvRequest request; source->next(request);) {
      blocks += std::ssize(request.hash_ids);
      seen.insert(request.hash_ids.begin(), request.hash_ids.end());
    }
    CHECK(1 - static_cast<double>(seen.size()) / static_cast<double>(blocks) == Approx(reuse.blocks).margin(5e-4));

    // The pool gives out whole blocks only, and none to a request of the same step: a few less.
    const KvLedger ledger = test::run_policy("cpu.paged_prefix", {{"trace", path},
                                                                  {"requests", std::int64_t{0}},
                                                                  {"model", std::string("llama31_8b")},
                                                                  {"max_length", std::int64_t{200'000}},
                                                                  {"pool_bytes", std::int64_t{10'000'000'000'000}},
                                                                  {"block_size", std::int64_t{512}},
                                                                  {"arrivals", std::string("trace")}});
    CHECK(ledger[KvCount::refused] == 0);
    const double found = static_cast<double>(ledger[KvCount::reused_prompt]) / 512 / static_cast<double>(blocks);
    CHECK(found <= reuse.blocks + 5e-4);
    CHECK(found == Approx(reuse.blocks).margin(0.003));
  }
}
