#include "kernels/serving/cost_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {

StepLoad load_of(const StepRow& row) {
  const std::int64_t tokens = std::ssize(row.tokens);
  return {.sampled = row.samples ? 1 : 0,
          .keys = row.position + tokens,
          .pairs = tokens * row.position + tokens * (tokens + 1) / 2,
          .prompts = tokens > 1 ? 1 : 0};
}

StepLoad load_of(const StepBatch& batch) {
  StepLoad sum;
  for (const StepRow& row : batch.rows) {
    const StepLoad load = load_of(row);
    sum.sampled += load.sampled;
    sum.keys += load.keys;
    sum.pairs += load.pairs;
    sum.prompts += load.prompts;
  }
  return sum;
}

namespace {

// In which no kernel runs.
double rest_ns(const StepCost& cost, const StepLoad& load) {
  return cost.step_ns + (load.prompts > 0 ? cost.prompt_step_ns : 0);
}

double kernels_ns(const StepCost& cost, const StepLoad& load, std::int64_t tokens) {
  double ns = cost.kernels_ns - (tokens == 1 ? cost.one_token_saved_ns : 0);
  if (tokens > cost.few_tokens) ns += cost.many_tokens_ns;
  if (load.prompts > 0) ns += cost.prompt_kernels_ns + cost.prompt_row_ns * static_cast<double>(load.prompts);
  return ns;
}

double attention_ns(const StepCost& cost, const StepRow& row) {
  const StepLoad load = load_of(row);
  const double reading_ns = cost.key_ns * static_cast<double>(load.keys);
  return load.prompts == 0 ? reading_ns : std::max(reading_ns, cost.pair_ns * static_cast<double>(load.pairs));
}

}  // namespace

double step_time_ns(const StepCost& cost, const StepBatch& batch) {
  const StepLoad load = load_of(batch);
  const auto tokens = static_cast<double>(batch.tokens);
  double sum_ns = rest_ns(cost, load) + kernels_ns(cost, load, batch.tokens) + cost.stream_ns * tokens;
  std::int64_t single_keys = 0;
  for (const StepRow& row : batch.rows) {
    sum_ns += attention_ns(cost, row);
    if (row.tokens.size() == 1) single_keys += load_of(row).keys;
  }
  sum_ns += std::min(cost.first_keys_ns, cost.first_key_ns * static_cast<double>(single_keys));
  const auto multiplied = static_cast<double>(cost.whole_tiles ? tile_tokens(batch.tokens) : batch.tokens);
  const double arithmetic_ns = cost.token_ns * multiplied + cost.sample_ns * static_cast<double>(load.sampled);
  return sum_ns + (cost.weights_hidden
                       ? std::max(cost.weights_ns, arithmetic_ns)
                       : std::max(std::hypot(cost.weights_ns, arithmetic_ns), arithmetic_ns / cost.sustained));
}

CostModel::CostModel(const StepCost& cost) : cost_(cost) {
  const auto check = [](const char* field, double value) {
    if (!std::isfinite(value) || value < 0)
      throw ProblemError(field, std::string(field) + " must be finite and not negative, got " + std::to_string(value));
  };
  check("step_ns", cost.step_ns);
  check("prompt_step_ns", cost.prompt_step_ns);
  check("kernels_ns", cost.kernels_ns);
  check("one_token_saved_ns", cost.one_token_saved_ns);
  check("few_tokens", static_cast<double>(cost.few_tokens));
  check("many_tokens_ns", cost.many_tokens_ns);
  check("prompt_kernels_ns", cost.prompt_kernels_ns);
  check("prompt_row_ns", cost.prompt_row_ns);
  check("weights_ns", cost.weights_ns);
  check("token_ns", cost.token_ns);
  check("sample_ns", cost.sample_ns);
  check("stream_ns", cost.stream_ns);
  check("key_ns", cost.key_ns);
  check("first_key_ns", cost.first_key_ns);
  check("first_keys_ns", cost.first_keys_ns);
  check("pair_ns", cost.pair_ns);
  check("host_ns", cost.host_ns);
  if (!(cost.sustained > 0 && cost.sustained <= 1))
    throw ProblemError("sustained", "sustained must be above 0 and at most 1, got " + std::to_string(cost.sustained));
}

StepTime CostModel::step(const StepBatch& batch, std::span<TokenId> next) {
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    const StepRow& r = batch.rows[row];
    if (!r.samples) continue;
    const auto position = static_cast<std::uint64_t>(r.position) + r.tokens.size();
    next[row] = static_cast<TokenId>(stream_key(static_cast<std::uint64_t>(r.sequence), position) >> 33);  // 31 bits
  }
  const double ns = step_time_ns(cost_, batch);
  const double resting_ns = rest_ns(cost_, load_of(batch));
  return {.ns = std::llround(ns),
          .busy_ns = std::llround(ns - resting_ns),
          .host_ns = std::llround(std::min(cost_.host_ns, resting_ns))};
}

}  // namespace inferometer
