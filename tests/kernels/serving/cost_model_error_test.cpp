// What the cost model says, against kernels and steps of a decoder that were measured on an H200.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "harness/results/terminal.hpp"
#include "kernels/serving/cost_model.hpp"
#include "tests/harness/run/child_run.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

Json published_rows(const std::string& name) {
  return read_json(std::string(INFEROMETER_SOURCE_DIR) + "/results/h200/" + name + ".json").at("rows");
}

ServingProblem problem_of(std::int64_t weight_bits, std::int64_t kv_bits) {
  ServingProblem problem;
  problem.weight_bits = weight_bits;
  problem.kv_bits = kv_bits;
  return problem;
}

// Of modelled over measured times.
struct Errors {
  double squares = 0;
  double greatest = 0;
  int count = 0;

  void add(double modelled, double measured) {
    const double error = std::log(modelled / measured);
    squares += error * error;
    greatest = std::max(greatest, std::abs(error));
    ++count;
  }
  double root_mean_square() const { return std::sqrt(squares / count); }
};

double amortized_ns(const Json& row) { return row.at("timing").at("amortized").at("mean_ns"); }

double step_us(std::int64_t weight_bits, std::int64_t kv_bits, std::int64_t rows, std::int64_t row_tokens,
               std::int64_t context, bool with_host) {
  const ServingProblem problem = problem_of(weight_bits, kv_bits);
  const StepCost cost = step_cost(problem, achieved_rates(problem));
  const std::vector<TokenId> tokens(static_cast<std::size_t>(row_tokens));
  StepBatch batch;
  batch.tokens = rows * row_tokens;
  for (std::int64_t row = 0; row < rows; ++row)
    batch.rows.push_back({.sequence = row, .tokens = tokens, .position = context, .samples = true});
  return (step_time_ns(cost, batch) - (with_host ? 0 : cost.host_ns)) / 1e3;
}

// A line of the notes' table.
std::string line_of(std::int64_t weight_bits, std::int64_t kv_bits, const std::string& step, double modelled_us,
                    double measured_us, const std::string& source) {
  return "| " + std::to_string(weight_bits) + " / " + std::to_string(kv_bits) + " | " + step + " | " +
         formatted("%.0f", modelled_us) + " | " + formatted("%.0f", measured_us) + " | " +
         formatted("%+.1f", 100 * (modelled_us / measured_us - 1)) + " % | " + source + " |";
}

// On a card that rests before each row, or not.
double product_ns(const Json& problem, std::int64_t bits, bool rests) {
  const MachineRates rates = achieved_rates(problem_of(bits, 16));
  const double weights = problem.at("n").get<double>() * problem.at("k").get<double>();
  const double bytes = weights * static_cast<double>(bits) / 8 + (bits == 16 ? 0 : weights / 128 * 2);
  const double reading_ns = 1e9 * bytes / rates.weights_bytes_per_s;
  const double arithmetic_ns =
      1e9 * 2 * weights * static_cast<double>(tile_tokens(problem.at("m"))) / rates.matmul_flops_per_s;
  return rates.product_start_ns +
         std::max(std::hypot(reading_ns, arithmetic_ns), rests ? 0 : arithmetic_ns / rates.sustained);
}

}  // namespace

TEST_CASE("serving cost: products of 1 to 4096 tokens cost what was measured, within 7 and 9 % (root mean square)",
          "[serving][cost][results]") {
  struct File {
    const char* name;
    int rows;
    double limit;
  };
  for (const File& file : {File{"matmul_bit_width", 32, 0.072}, File{"matmul_batch", 32, 0.09}}) {
    const Json rows = published_rows(file.name);
    for (const auto& [bits, variant] : {std::pair(16, "cuda.f16_sm90"), {8, "cuda.w8a16"}, {4, "cuda.w4a16"}}) {
      Errors errors;
      for (const Json& row : rows)
        if (row.at("variant") == variant && row.at("status") == "ok")
          errors.add(product_ns(row.at("problem"), bits, true), amortized_ns(row));
      CAPTURE(file.name, bits, errors.root_mean_square(), errors.greatest);
      CHECK(errors.count == file.rows);
      CHECK(errors.root_mean_square() < file.limit);
      CHECK(errors.greatest < 0.18);
    }
  }
}

TEST_CASE("serving cost: products of 2048 tokens without rests cost what was measured, within 5 % (root mean square)",
          "[serving][cost][results]") {
  Errors errors;
  for (const Json& row : published_rows("matmul_f16"))
    if (row.at("variant") == "cuda.f16_sm90" && row.at("status") == "ok" && row.at("problem").at("m") == 2048)
      errors.add(product_ns(row.at("problem"), 16, false), amortized_ns(row));
  CAPTURE(errors.root_mean_square(), errors.greatest);
  CHECK(errors.count == 16);
  CHECK(errors.root_mean_square() < 0.05);
  CHECK(errors.greatest < 0.12);
}

TEST_CASE("serving cost: attention of single tokens costs what was measured, within 8 % (root mean square)",
          "[serving][cost][results]") {
  for (const auto& [bits, file] :
       {std::pair(16, "attention_decode"), {8, "attention_decode_kv8"}, {4, "attention_decode_kv4"}}) {
    const ServingProblem serving = problem_of(16, bits);
    const MachineRates rates = achieved_rates(serving);
    const double key_bytes = static_cast<double>(serving.token_bytes()) / 32;  // of a layer
    Errors errors;
    for (const Json& row : published_rows(file)) {
      const Json& problem = row.at("problem");
      if (row.at("variant") != "cuda.paged" || row.at("status") != "ok" || problem.at("kv_bits") != bits ||
          problem.at("q_heads") != 32 || problem.at("kv_heads") != 8 || problem.at("head_dim") != 128 ||
          problem.at("block_size") != 16 || problem.at("kv_group_size") != 0 || problem.at("kv_format") != "integer")
        continue;
      const double keys = problem.at("batch").get<double>() * problem.at("context").get<double>();
      errors.add(rates.attention_start_ns + 1e9 * keys * key_bytes / rates.kv_bytes_per_s +
                     std::min(rates.first_kv_ns, rates.first_kv_ns_per_byte * keys * key_bytes),
                 amortized_ns(row));
    }
    CAPTURE(bits, errors.root_mean_square(), errors.greatest);
    CHECK(errors.count >= 10);
    CHECK(errors.root_mean_square() < 0.08);
    CHECK(errors.greatest < 0.2);
  }
}

TEST_CASE("serving cost: steps of the decoder cost what was measured, within 10 %, prompts 20 %; the notes give each",
          "[serving][cost][results]") {
  const std::string notes = read_text(std::string(INFEROMETER_SOURCE_DIR) + "/results/notes/serving.md");
  const auto check = [&](std::int64_t weight_bits, std::int64_t kv_bits, const std::string& step, double modelled_us,
                         double measured_us, const std::string& source, double limit = 0.1) {
    const std::string line = line_of(weight_bits, kv_bits, step, modelled_us, measured_us, source);
    INFO(line);
    CHECK(std::abs(modelled_us / measured_us - 1) < limit);
    CHECK(notes.find(line) != std::string::npos);
  };
  struct Queued {
    std::int64_t weight_bits, rows, context;
    double us;
  };
  for (const Queued& q : {Queued{16, 1, 128, 3758.9}, Queued{16, 1, 2048, 3849.4}, Queued{16, 8, 1024, 4489.8},
                          Queued{16, 32, 2048, 6340.2}, Queued{16, 128, 2048, 12695.5}, Queued{4, 1, 128, 1706.8},
                          Queued{4, 1, 2048, 1799.7}, Queued{4, 8, 1024, 2202.9}, Queued{4, 32, 2048, 4538.7},
                          Queued{4, 128, 2048, 11811.0}})
    check(q.weight_bits, 16, std::to_string(q.rows) + " x " + std::to_string(q.context) + ", queued",
          step_us(q.weight_bits, 16, q.rows, 1, q.context, false), q.us, "99525a0");

  const std::map<std::string, std::string> kinds{
      {"cuda.paged", "queued"}, {"cuda.contiguous", "contiguous"}, {"cuda.recompute", "all its tokens"}};
  for (const Json& row : published_rows("generation")) {
    const Json& problem = row.at("problem");
    if (problem.at("model") != "llama3_8b" || row.at("status") != "ok") continue;
    const std::int64_t weight_bits = problem.at("weight_bits");
    const std::int64_t kv_bits = problem.at("kv_bits");
    const std::int64_t rows = problem.at("batch");
    const std::int64_t length =
        problem.at("prompt_tokens").get<std::int64_t>() + problem.at("new_tokens").get<std::int64_t>();
    const double measured_us = row.at("metrics").at("token_at_last_ns").get<double>() / 1e3;
    // cuda.recompute: the sequence again for each token, not as a graph, and the host waits for each.
    const std::string kind = kinds.at(row.at("variant"));
    const bool whole = row.at("variant") == "cuda.recompute";
    check(weight_bits, kv_bits, std::to_string(rows) + " x " + std::to_string(length) + ", " + kind,
          step_us(weight_bits, kv_bits, rows, whole ? length : 1, whole ? 0 : length, whole), measured_us,
          "h200/generation.json", whole ? 0.2 : 0.1);
  }
}
