#include "kernels/serving/cost_model.hpp"

#include <cmath>
#include <cstddef>
#include <string>

#include "harness/operator/fields.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {

double step_time_ns(const StepCost& cost, const StepBatch& batch) {
  double keys = 0;
  double pairs = 0;
  for (const StepRow& row : batch.rows) {
    const auto tokens = static_cast<double>(row.tokens.size());
    const auto position = static_cast<double>(row.position);
    keys += position + tokens;
    pairs += tokens * position + tokens * (tokens + 1) / 2;
  }
  const auto tokens = static_cast<double>(batch.tokens + batch.padding_tokens);
  return cost.step_ns + cost.token_ns * tokens + cost.key_ns * keys + cost.pair_ns * pairs;
}

CostModel::CostModel(const StepCost& cost) : cost_(cost) {
  const auto check = [](const char* field, double value) {
    if (!std::isfinite(value) || value < 0)
      throw ProblemError(field, std::string(field) + " must be finite and not negative, got " + std::to_string(value));
  };
  check("step_ns", cost.step_ns);
  check("token_ns", cost.token_ns);
  check("key_ns", cost.key_ns);
  check("pair_ns", cost.pair_ns);
}

std::int64_t CostModel::step(const StepBatch& batch, std::span<TokenId> next) {
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    const StepRow& r = batch.rows[row];
    if (!r.samples) continue;
    const auto position = static_cast<std::uint64_t>(r.position) + r.tokens.size();
    next[row] = static_cast<TokenId>(stream_key(static_cast<std::uint64_t>(r.sequence), position) >> 33);  // 31 bits
  }
  return std::llround(step_time_ns(cost_, batch));
}

}  // namespace inferometer
