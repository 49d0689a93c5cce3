// A config -> its rows: every combination of the dimensions' values, validated by the operator, kept by the conditions.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "harness/sweep/config.hpp"
#include "harness/sweep/field_names.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kMaxRows = 1'000'000;

// `given` as the type of the field that `held` is of, where a field of that type takes it.
std::optional<Value> typed_as(const Value& held, const Value& given) {
  const auto* integer = std::get_if<std::int64_t>(&given);
  if (std::holds_alternative<double>(held) && integer != nullptr) return static_cast<double>(*integer);
  return held.index() == given.index() ? std::optional(given) : std::nullopt;
}

class Expansion {
 public:
  explicit Expansion(const SweepConfig& config) : config_(config), op_(*config.op), chosen_(config.dimensions.size()) {
    for (const Dimension& dimension : config.dimensions)
      for (const Setting& setting : dimension.settings) given_.emplace_back(setting.name, setting.values.front());
  }

  std::vector<SweepRow> run() {
    check_size();
    do {
      choose_values();
      if (const auto problem = read_problem()) add_rows(*problem);
    } while (step());
    finish_baselines();
    return std::move(rows_);
  }

 private:
  void check_size() const {
    std::size_t rows = config_.variants.size();
    for (const Dimension& dimension : config_.dimensions) {
      if (__builtin_mul_overflow(rows, dimension.size(), &rows) || rows > kMaxRows) {
        throw ConfigError(config_.path + ": axes, zip groups and variants make more than " + std::to_string(kMaxRows) +
                          " rows");
      }
    }
  }

  // To the next combination, the last dimension first. False after the last.
  bool step() {
    for (std::size_t d = chosen_.size(); d-- > 0;) {
      if (++chosen_[d] < config_.dimensions[d].size()) return true;
      chosen_[d] = 0;
    }
    return false;
  }

  void choose_values() {
    std::size_t slot = 0;
    for (std::size_t d = 0; d < chosen_.size(); ++d)
      for (const Setting& setting : config_.dimensions[d].settings) given_[slot++].second = setting.values[chosen_[d]];
  }

  // Every field in the operator's order; nothing when the problem cannot be, but conditions leave it out anyway.
  std::optional<Fields> read_problem() const {
    try {
      return op_.describe(op_.parse(given_).get());
    } catch (const ProblemError& error) {
      if (left_out()) return std::nullopt;
      throw ConfigError(place_of(error.field()) + ": " + error.what() + " (" + to_string(given_) + ")");
    }
  }

  // Where the value of a field comes from, with its index in an axis.
  std::string place_of(const std::string& field) const {
    for (std::size_t d = 0; d < chosen_.size(); ++d) {
      for (const Setting& setting : config_.dimensions[d].settings) {
        const std::vector<std::string> targets = targets_of(setting.name, op_);
        if (setting.name != field && std::find(targets.begin(), targets.end(), field) == targets.end()) continue;
        return setting.place + (setting.is_list ? "/" + std::to_string(chosen_[d]) : "");
      }
    }
    return config_.path;
  }

  // Whether the conditions leave out the problem at hand, which the operator refused.
  bool left_out() const {
    Fields problem;
    for (const FieldInfo& field : op_.fields) problem.emplace_back(field.name, field.default_value);
    for (const auto& [name, value] : given_) {
      for (const std::string& target : targets_of(name, op_)) {
        for (auto& [field, held] : problem) {
          if (field != target) continue;
          const std::optional<Value> typed = typed_as(held, value);
          if (!typed) return false;  // of a wrong type: no condition can read it
          held = *typed;
        }
      }
    }
    return std::none_of(config_.variants.begin(), config_.variants.end(),
                        [&](const std::string& variant) { return keeps(problem, variant); });
  }

  bool keeps(const Fields& problem, const std::string& variant) const {
    return std::all_of(config_.conditions.begin(), config_.conditions.end(), [&](const Condition& condition) {
      try {
        return condition.expression.holds(problem, variant);
      } catch (const ExpressionError& error) {
        throw ConfigError(condition.place + ": " + error.what() + " (" + to_string(problem) + ")");
      }
    });
  }

  void add_rows(const Fields& problem) {
    std::optional<std::string> baseline;
    for (const std::string& variant : config_.variants) {
      if (!keeps(problem, variant)) continue;
      std::string id = row_id(op_.name, variant, problem);
      const auto [found, is_new] = row_of_id_.try_emplace(id, rows_.size());
      if (!is_new) {
        const SweepRow& other = rows_[found->second];
        if (other.variant != variant || other.problem != problem)
          throw ConfigError(config_.path + ": two rows have the id " + id + "; change any value of one of them");
        continue;
      }
      if (!baseline) baseline = baseline_of(problem);
      rows_.push_back({.id = std::move(id),
                       .operator_name = op_.name,
                       .variant = variant,
                       .problem = problem,
                       .baseline_id = *baseline});
    }
  }

  // The id of the row that `problem` is compared with, should there be one; else empty.
  std::string baseline_of(const Fields& problem) {
    if (!config_.baseline) return {};
    const Baseline& baseline = *config_.baseline;
    if (baseline.replaced.empty()) return row_id(op_.name, baseline.variant, problem);
    Fields other = problem;
    for (const auto& [name, value] : baseline.replaced) {
      for (auto& [field, held] : other)
        if (field == name) held = value;
    }
    try {
      return row_id(op_.name, baseline.variant, op_.describe(op_.parse(other).get()));
    } catch (const ProblemError& error) {
      baseline_error_ = error.what();
      return {};
    }
  }

  // Forgets baselines that are no row. That none is left must not be the fault of a value no problem could have.
  void finish_baselines() {
    bool any = false;
    for (SweepRow& row : rows_) {
      if (!row_of_id_.contains(row.baseline_id)) row.baseline_id.clear();
      any = any || !row.baseline_id.empty();
    }
    if (!any && !baseline_error_.empty())
      throw ConfigError(config_.baseline->place + ": is no problem of any row: " + baseline_error_);
  }

  const SweepConfig& config_;
  const Operator& op_;
  std::vector<std::size_t> chosen_;  // of each dimension: which value
  Fields given_;                     // name and value of every setting, in the order of the dimensions
  std::vector<SweepRow> rows_;
  std::unordered_map<std::string, std::size_t> row_of_id_;
  std::string baseline_error_;
};

}  // namespace

std::vector<SweepRow> expand(const SweepConfig& config) { return Expansion(config).run(); }

}  // namespace inferometer
