// Results files and claims made up for tests: rows of real operators with the figures that a test wants.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/claims/claims_file.hpp"
#include "harness/claims/evidence.hpp"
#include "harness/operator/registry.hpp"
#include "harness/results/record_json.hpp"
#include "harness/sweep/sweep.hpp"
#include "tests/harness/results/sample_record.hpp"

namespace inferometer::test {

// A decode row of a GPU whose time is `ns`, with a confidence interval of 1 % to either side.
inline Record made_up_row(const std::string& operator_name, const std::string& variant, const Fields& given) {
  const Operator* op = find_operator(operator_name);
  Record record = sample_record();
  record.operator_name = operator_name;
  record.variant = variant;
  record.backend = variant.substr(0, variant.find('.'));
  record.problem = op->describe(op->parse(given).get());
  record.id = row_id(operator_name, variant, record.problem);
  record.metrics.clear();
  return record;
}

inline Record decode_row(const std::string& variant, std::int64_t context, std::int64_t block_size, double ns) {
  Record record = made_up_row("attention_decode", variant, {{"context", context}, {"block_size", block_size}});
  record.timing->headline_ns = ns;
  record.timing->isolated.median_ns = ns;
  record.timing->isolated.ci_low_ns = 0.99 * ns;
  record.timing->isolated.ci_high_ns = 1.01 * ns;
  record.timing->amortized.reset();
  return record;
}

inline Record failed(Record record, Status status) {
  record.status = status;
  record.reason = "it went wrong";
  record.timing.reset();
  record.rates.reset();
  record.check.reset();
  return record;
}

inline NamedResults made_up_file(const std::string& path, const std::vector<Record>& records,
                                 const std::string& gpu = "some GPU",
                                 const std::string& started_at = "2026-11-30T00:00:00Z") {
  Json json{{"schema", "inferometer.results/1"},
            {"started_at", started_at},
            {"environment",
             {{"program", {{"git_commit", "0123456789abcdef"}, {"git_dirty", false}}},
              {"host", {{"cpu_model", "some CPU"}}},
              {"gpu", gpu.empty() ? Json(nullptr) : Json{{"name", gpu}}}}},
            {"rows", Json::array()}};
  for (const Record& record : records) json["rows"].push_back(record_json(record));
  return {.path = path, .json = json};
}

// A claim of one deciding part over decode rows; `part` holds more of its keys, as "\"statistic\": ...".
inline Claim one_part_claim(const std::string& part) {
  const std::string text =
      R"({"schema": "inferometer.claims/1", "claims": [{"id": "one", "claim": "It is so", "source": "a paper",
    "conditions": "here", "runs": [], "parts": [{"name": "the part", "experiment": "experiments/attention_decode.json",
    "operator": "attention_decode", "variants": ["cuda.paged"], )" +
      part + "}]}]}";
  return parse_claims(text, "claims.json").front();
}

inline const std::string kSlowdown =
    R"("statistic": "ratio", "quantity": "time", "against": {"variant": "cuda.contiguous", "problem": {"block_size": 0}})";

}  // namespace inferometer::test
