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
          .has_prompt = tokens > 1};
}

StepLoad load_of(const StepBatch& batch) {
  StepLoad sum;
  for (const StepRow& row : batch.rows) {
    const StepLoad load = load_of(row);
    sum.sampled += load.sampled;
    sum.keys += load.keys;
    sum.pairs += load.pairs;
    sum.has_prompt = sum.has_prompt || load.has_prompt;
  }
  return sum;
}

double step_time_ns(const StepCost& cost, const StepBatch& batch) {
  const StepLoad load = load_of(batch);
  double attention_ns = 0;
  for (const StepRow& row : batch.rows) {
    const StepLoad own = load_of(row);
    attention_ns +=
        std::max(cost.key_ns * static_cast<double>(own.keys), cost.pair_ns * static_cast<double>(own.pairs));
  }
  const auto tokens = static_cast<double>(batch.tokens + batch.padding_tokens);
  const double arithmetic_ns = cost.token_ns * tokens + cost.sample_ns * static_cast<double>(load.sampled);
  const double matrices_ns =
      cost.weights_hidden ? std::max(cost.weights_ns, arithmetic_ns) : cost.weights_ns + arithmetic_ns;
  return cost.step_ns + (load.has_prompt ? cost.prompt_step_ns : 0) + matrices_ns + attention_ns;
}

CostModel::CostModel(const StepCost& cost) : cost_(cost) {
  const auto check = [](const char* field, double value) {
    if (!std::isfinite(value) || value < 0)
      throw ProblemError(field, std::string(field) + " must be finite and not negative, got " + std::to_string(value));
  };
  check("step_ns", cost.step_ns);
  check("prompt_step_ns", cost.prompt_step_ns);
  check("weights_ns", cost.weights_ns);
  check("token_ns", cost.token_ns);
  check("sample_ns", cost.sample_ns);
  check("key_ns", cost.key_ns);
  check("pair_ns", cost.pair_ns);
  check("host_ns", cost.host_ns);
}

StepTime CostModel::step(const StepBatch& batch, std::span<TokenId> next) {
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    const StepRow& r = batch.rows[row];
    if (!r.samples) continue;
    const auto position = static_cast<std::uint64_t>(r.position) + r.tokens.size();
    next[row] = static_cast<TokenId>(stream_key(static_cast<std::uint64_t>(r.sequence), position) >> 33);  // 31 bits
  }
  const double ns = step_time_ns(cost_, batch);
  const double launches_ns = cost_.step_ns + (load_of(batch).has_prompt ? cost_.prompt_step_ns : 0);
  return {.ns = std::llround(ns),
          .busy_ns = std::llround(ns - launches_ns),
          .host_ns = std::llround(std::min(cost_.host_ns, launches_ns))};
}

}  // namespace inferometer
