// A sweep config after reading and before expansion: what varies, what is kept, how it is measured.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "harness/sweep/cursor.hpp"
#include "harness/sweep/expression.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {

// One name (a field or an alias) and the values it takes.
struct Setting {
  std::string name;
  std::string place;     // for messages: "a.json: /axes/seq_len"
  bool is_list = false;  // in the config, values stand in an array: messages add their index to the place
  std::vector<Value> values;
};

// Settings that move together, all with the same number of values: a fixed field (one value), an axis, a zip group.
struct Dimension {
  std::vector<Setting> settings;

  std::size_t size() const { return settings.front().values.size(); }
};

// Rows are compared with the row of this variant whose problem is theirs with these fields replaced.
struct Baseline {
  std::string place;
  std::string variant;
  Fields replaced;
};

struct Condition {
  std::string place;
  Expression expression;
};

struct SweepConfig {
  std::string path;
  std::string name;
  std::string question;
  const Operator* op = nullptr;
  std::vector<std::string> variants;  // in the config's order, globs expanded
  std::optional<Baseline> baseline;
  std::vector<Dimension> dimensions;  // the first varies slowest
  std::vector<Condition> conditions;  // a row must hold all
  MeasureConfig measure;
  Limits limits;
};

// All of these throw ConfigError.

SweepConfig read_config(const Cursor& root, const std::string& path);

const Operator* read_operator(const Cursor& value);
Condition read_condition(const Cursor& value, const Operator& op);

// At least one, each once: a value that comes twice is a slip.
std::vector<Value> axis_values(const Cursor& array);

// Names of variants from names and globs, in the order of the patterns.
std::vector<std::string> match_variants(const Operator& op, const std::vector<Cursor>& patterns);

// --set, --variants, --filter and --quick, in the order in which they take effect: --quick, the others.
void apply_options(SweepConfig& config, const SweepOptions& options);

// All rows that the conditions keep, each id once.
std::vector<SweepRow> expand(const SweepConfig& config);

}  // namespace inferometer
