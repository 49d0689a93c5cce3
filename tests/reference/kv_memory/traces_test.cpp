// The readers of traces and the synthetic distributions: what they accept, what they refuse and how they say so.
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/kv_memory/model_shape.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::csv_of;
using test::TemporaryTrace;

namespace {

std::vector<KvRequest> read_all(const KvMemoryProblem& problem) {
  std::vector<KvRequest> requests;
  const auto source = open_requests(problem);
  for (KvRequest request; source->next(request);) requests.push_back(request);
  return requests;
}

KvMemoryProblem of_file(const std::string& path, const std::string& arrivals = "trace") {
  return {.trace = path, .requests = 0, .arrivals = arrivals};
}

std::string data(const std::string& name) { return std::string(INFEROMETER_SOURCE_DIR) + "/tests/data/" + name; }

// The error of reading a file with this text.
std::string refusal(const std::string& text, const std::string& extension = ".csv",
                    const std::string& arrivals = "trace") {
  const TemporaryTrace trace(text, extension);
  try {
    read_all(of_file(trace.path(), arrivals));
  } catch (const TraceError& error) {
    const std::string sentence = error.what();
    REQUIRE(sentence.starts_with(trace.path() + ":"));
    return sentence.substr(trace.path().size());
  }
  return "accepted";
}

}  // namespace

TEST_CASE("kv_memory traces: a CSV trace is read by column names, its last line with or without an end",
          "[kv_memory][traces]") {
  const std::vector<KvRequest> requests = read_all(of_file(data("azure_tiny.csv")));
  REQUIRE(requests.size() == 4);
  CHECK(requests[0].prompt == 374);
  CHECK(requests[0].output == 44);
  CHECK(requests[0].arrival_ms == 0);
  CHECK(requests[1].arrival_ms == Approx(4314.579).margin(1e-3));  // 50.9951690 s - 46.6805900 s
  CHECK(requests[3].id == 3);
  CHECK(requests[3].output == 183);
  CHECK(requests[3].arrival_ms == Approx(86'400'000.0 - 65'746'680.59).margin(1e-2));  // midnight
}

TEST_CASE("kv_memory traces: line ends of Windows, quotes, a byte order mark and empty lines change nothing",
          "[kv_memory][traces]") {
  const TemporaryTrace trace(
      "\xef\xbb\xbfTIMESTAMP,\"GeneratedTokens\",note,ContextTokens\r\n"
      "\"2023-11-16 18:15:46\",\"7\",\"a, \"\"b\"\"\",12\r\n\r\n2023-11-16 18:15:47.5,8,,13\r\n");
  const std::vector<KvRequest> requests = read_all(of_file(trace.path()));
  REQUIRE(requests.size() == 2);
  CHECK(requests[0].prompt == 12);
  CHECK(requests[0].output == 7);
  CHECK(requests[1].prompt == 13);
  CHECK(requests[1].arrival_ms == 1500);
}

TEST_CASE("kv_memory traces: a list of lengths needs no times unless requests arrive by them", "[kv_memory][traces]") {
  const std::string text = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n10,3,13,3.3\n";
  CHECK(refusal(text, ".csv", "all_at_start") == "accepted");
  CHECK(refusal(text).find(":1: expected a header with a column TIMESTAMP, got 'num_prefill") == 0);
}

TEST_CASE("kv_memory traces: malformed CSV rows are named by line, with what was expected", "[kv_memory][traces]") {
  const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
  const std::string row = "2023-11-16 18:15:46.6805900,374,44\n";
  CHECK(refusal("") == ":1: expected a header with the names of the columns, got 'an empty file'");
  CHECK(refusal(header) == ":1: expected at least one request, got 'the end of the file'");
  CHECK(refusal("TIMESTAMP,Context,GeneratedTokens\n" + row).find("column ContextTokens or num_prefill_tokens") !=
        std::string::npos);
  CHECK(refusal(header + row + "2023-11-16 18:15:47,1\n").find(":3: expected 3 columns") == 0);
  CHECK(refusal(header + "2023-11-16 18:15:47,-1,5\n").find(":2: expected ContextTokens: an integer from 0 to") == 0);
  CHECK(refusal(header + "2023-11-16 18:15:47,1,5.5\n").find(":2: expected GeneratedTokens: an integer") == 0);
  CHECK(refusal(header + "2023-11-16 18:15:47,,5\n").find("got ''") != std::string::npos);
  CHECK(refusal(header + "2023-11-16 18:15:47,99999999999999999999,5\n").find(":2: expected ContextTokens") == 0);
  CHECK(refusal(header + "2023-13-16 18:15:47,1,5\n").find(":2: expected TIMESTAMP: a time such as") == 0);
  CHECK(refusal(header + "yesterday,1,5\n").find("got 'yesterday'") != std::string::npos);
  CHECK(refusal(header + row + "2023-11-16 18:15:45,1,5\n").find(":3: expected a timestamp not before") == 0);
  CHECK(refusal(header + row + "2023-11-16 18:15:45,1,5\n", ".csv", "all_at_start") == "accepted");
  CHECK(refusal(header + "\"2023-11-16 18:15:47,1,5\n").find(":2: expected 3 columns") == 0);
  CHECK(refusal(header + std::string(2'000'000, '1') + "\n").find(":2: expected a line of less than") == 0);
}

TEST_CASE("kv_memory traces: a Mooncake trace gives lengths, times and the ids of prefix blocks",
          "[kv_memory][traces]") {
  const std::vector<KvRequest> requests = read_all(of_file(data("mooncake_tiny.jsonl")));
  REQUIRE(requests.size() == 3);
  CHECK(requests[0].prompt == 1024);
  CHECK(requests[0].hash_ids == std::vector<std::int64_t>{1, 2});
  CHECK(requests[1].arrival_ms == 60);
  CHECK(requests[2].output == 2);
  CHECK(requests[2].hash_ids == std::vector<std::int64_t>{4});
}

TEST_CASE("kv_memory traces: malformed JSON lines are named by line, with what was expected", "[kv_memory][traces]") {
  const auto refuse = [](const std::string& text) { return refusal(text, ".jsonl"); };
  const std::string row = R"({"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [1, 2]})"
                          "\n";
  CHECK(refuse("") == ":1: expected at least one request, got 'the end of the file'");
  CHECK(refuse(row) == "accepted");
  CHECK(refuse(row + "{\"timestamp\": 5, \n").find(":2: expected a JSON object, got '{\"timestamp\"") == 0);
  CHECK(refuse("[1, 2]\n").find(":1: expected a JSON object") == 0);
  CHECK(refuse(R"({"timestamp": 5, "output_length": 3, "hash_ids": []})").find(":1: expected a member input_length") ==
        0);
  CHECK(refuse(R"({"timestamp": 5, "input_length": -2, "output_length": 3, "hash_ids": []})")
            .find(":1: expected input_length: an integer from 0 to") == 0);
  CHECK(refuse(R"({"timestamp": 5, "input_length": "9", "output_length": 3, "hash_ids": [1]})").find("got '\"9\"'") !=
        std::string::npos);
  CHECK(refuse(R"({"timestamp": 5, "input_length": 600, "output_length": 3, "hash_ids": [1]})")
            .find(":1: expected hash_ids: 2 ids") == 0);
  CHECK(
      refuse(R"({"timestamp": 5, "input_length": 600, "output_length": 3})").find(":1: expected hash_ids: an array") ==
      0);
  CHECK(refuse(row + R"({"timestamp": 4, "input_length": 0, "output_length": 3, "hash_ids": []})")
            .find(":2: expected a timestamp not before") == 0);
}

TEST_CASE("kv_memory traces: only the first requests of a trace are read where a number is given",
          "[kv_memory][traces]") {
  const TemporaryTrace trace(csv_of({{1, 1}, {2, 1}, {3, 1}}) + "malformed\n");
  KvMemoryProblem problem{.trace = trace.path(), .requests = 2};
  CHECK(read_all(problem).size() == 2);
  problem.requests = 4;
  CHECK_THROWS_AS(read_all(problem), TraceError);
}

TEST_CASE("kv_memory traces: more requests than a trace holds are refused", "[kv_memory][traces]") {
  const auto refused = [](const std::string& trace, std::int64_t requests) -> std::string {
    try {
      find_operator("kv_memory")->parse({{"trace", trace}, {"requests", requests}});
    } catch (const ProblemError& error) {
      return error.field() + ": " + error.what();
    }
    return "accepted";
  };
  // Blank lines hold no request, and the last line may lack its end.
  const TemporaryTrace csv("ContextTokens,GeneratedTokens\r\n1,1\r\n\r\n2,1\r\n3,1");
  CHECK(refused(csv.path(), 3) == "accepted");
  CHECK(refused(csv.path(), 0) == "accepted");
  CHECK(refused(csv.path(), 4) ==
        "requests: requests must be at most the 3 of " + csv.path() + ", or 0 for all of them, got 4");
  const std::string row = "{\"timestamp\": 0, \"input_length\": 1, \"output_length\": 1, \"hash_ids\": [7]}\n";
  const TemporaryTrace jsonl(row + row + "\n", ".jsonl");
  CHECK(refused(jsonl.path(), 2) == "accepted");
  CHECK(refused(jsonl.path(), 1'000'000).find("requests must be at most the 2 of ") != std::string::npos);
  // Longer than what is read at once.
  std::string long_file = "ContextTokens,GeneratedTokens\n";
  for (int i = 0; i < 40'000; ++i) long_file += "1,1\n";
  const TemporaryTrace many(long_file);
  CHECK(refused(many.path(), 40'000) == "accepted");
  CHECK(refused(many.path(), 40'001).find("at most the 40000 of ") != std::string::npos);
}

TEST_CASE("kv_memory traces: a problem without its trace is refused, with what would do", "[kv_memory][traces]") {
  const auto refused = [](const Fields& fields) -> std::string {
    try {
      find_operator("kv_memory")->parse(fields);
    } catch (const ProblemError& error) {
      return error.field() + ": " + error.what();
    }
    return "accepted";
  };
  const std::string none = refused({{"trace", std::string("synthetic_sharegtp")}});
  CHECK(none.find("trace: trace must be a .csv or .jsonl file, or one of synthetic_sharegpt, ") == 0);
  CHECK(refused({{"trace", std::string("/nowhere/trace.csv")}}) ==
        "trace: /nowhere/trace.csv: cannot be opened: No such file or directory");
  CHECK(refused({{"requests", std::int64_t{0}}}).find("requests: requests must be at least 1 for a synthetic") == 0);
  CHECK(refused({{"arrivals", std::string("trace")}}).find("arrivals: arrivals must be all_at_start") == 0);
}

TEST_CASE("kv_memory traces: synthetic lengths have the published means, medians and 90th percentiles",
          "[kv_memory][traces][synthetic]") {
  constexpr std::int64_t kRequests = 20'000;
  const auto lengths = [](const char* name, std::int64_t KvRequest::*length) {
    std::vector<std::int64_t> values;
    // Far above any length, so that none is drawn again.
    for (const KvRequest& request :
         read_all({.trace = name, .requests = kRequests, .max_length = 1'000'000'000, .trace_seed = 3}))
      values.push_back(request.*length);
    std::sort(values.begin(), values.end());
    return values;
  };
  const auto mean = [](const std::vector<std::int64_t>& values) {
    double sum = 0;
    for (const std::int64_t value : values) sum += static_cast<double>(value);
    return sum / static_cast<double>(values.size());
  };
  // A geometric mean's standard error is mean / sqrt(20000), 0.7 %; four of them.
  CHECK(mean(lengths("synthetic_sharegpt", &KvRequest::prompt)) == Approx(161.31).epsilon(0.028));
  CHECK(mean(lengths("synthetic_sharegpt", &KvRequest::output)) == Approx(337.99).epsilon(0.028));
  CHECK(mean(lengths("synthetic_alpaca", &KvRequest::prompt)) == Approx(19.31).epsilon(0.028));
  CHECK(mean(lengths("synthetic_alpaca", &KvRequest::output)) == Approx(58.45).epsilon(0.028));

  // A quantile q has standard error sqrt(q (1 - q) / 20000) in rank; the slope of the log-normal turns it into
  // sigma sqrt(q (1 - q) / 20000) / density: 0.9 % of the median and 1.2 % of the 90th percentile at sigma 1. Four.
  struct Quantiles {
    const char* name;
    std::int64_t KvRequest::*length;
    double median;
    double p90;
  };
  for (const Quantiles& q : {Quantiles{"synthetic_sharegpt4", &KvRequest::prompt, 1730, 5696},
                             Quantiles{"synthetic_sharegpt4", &KvRequest::output, 415, 834},
                             Quantiles{"synthetic_azure_code", &KvRequest::prompt, 1469, 5188},
                             Quantiles{"synthetic_azure_conv", &KvRequest::output, 129, 424},
                             Quantiles{"synthetic_mooncake", &KvRequest::prompt, 11587, 38611}}) {
    CAPTURE(q.name);
    const std::vector<std::int64_t> values = lengths(q.name, q.length);
    CHECK(static_cast<double>(values[kRequests / 2]) == Approx(q.median).epsilon(0.04));
    CHECK(static_cast<double>(values[kRequests * 9 / 10]) == Approx(q.p90).epsilon(0.05));
  }
}

TEST_CASE("kv_memory traces: a synthetic trace depends on its seed alone and keeps within the longest length",
          "[kv_memory][traces][synthetic]") {
  for (const std::string& name : synthetic_names()) {
    CAPTURE(name);
    KvMemoryProblem problem{.trace = name, .requests = 500, .max_length = 2048, .trace_seed = 7};
    const std::vector<KvRequest> requests = read_all(problem);
    REQUIRE(requests.size() == 500);
    for (const KvRequest& request : requests) {
      CHECK(request.prompt >= 1);
      CHECK(request.output >= 1);
      CHECK(request.stored() <= 2048);
    }
    const auto prompts = [&] {
      std::vector<std::int64_t> values;
      for (const KvRequest& request : read_all(problem)) values.push_back(request.prompt);
      return values;
    };
    const std::vector<std::int64_t> seven = prompts();
    CHECK(prompts() == seven);
    problem.trace_seed = 8;
    CHECK(prompts() != seven);
  }
}

TEST_CASE("kv_memory traces: synthetic prompts that share blocks share two thirds of them", "[kv_memory][synthetic]") {
  const std::vector<KvRequest> requests =
      read_all({.trace = "synthetic_mooncake", .requests = 4000, .max_length = 131072});
  std::vector<std::int64_t> ids;
  for (const KvRequest& request : requests) ids.insert(ids.end(), request.hash_ids.begin(), request.hash_ids.end());
  const auto all = static_cast<double>(ids.size());
  std::sort(ids.begin(), ids.end());
  const auto distinct = static_cast<double>(std::unique(ids.begin(), ids.end()) - ids.begin());
  CHECK(1 - distinct / all > 0.60);  // Mooncake's trace: 0.64
  CHECK(1 - distinct / all < 0.66);
}
