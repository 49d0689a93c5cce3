#include "harness/sweep/sweep.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "harness/operator/nearest_word.hpp"
#include "harness/results/sha256.hpp"
#include "harness/sweep/config.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kIdDigits = 12;
constexpr std::size_t kMaxConfigBytes = std::size_t{16} << 20;

// Whether a file from before one of the fields came has the row under this id. It ran with that field's default.
bool had_id(const SweepRow& row, const Operator& op, const std::string& id) {
  return std::any_of(op.fields.begin(), op.fields.end(), [&](const FieldInfo& field) {
    Fields problem = row.problem;
    const std::pair<std::string, Value> later{field.name, field.default_value};
    return std::erase(problem, later) > 0 && row_id(row.operator_name, row.variant, problem) == id;
  });
}

// Keeps the one row whose id is or begins with `wanted`, or was that in older files.
void select_row(std::vector<SweepRow>& rows, const Operator& op, const std::string& wanted) {
  std::vector<std::string> matches;
  for (const SweepRow& row : rows)
    if (row.id.starts_with(wanted)) matches.push_back(row.id);
  if (matches.empty() && wanted.size() == kIdDigits) {
    for (const SweepRow& row : rows)
      if (had_id(row, op, wanted)) matches.push_back(row.id);
  }
  if (matches.empty()) throw ConfigError("--row " + printable(wanted) + ": no row has this id; --dry-run lists them");
  if (matches.size() > 1) {
    throw ConfigError("--row " + printable(wanted) + ": begins the ids of " + std::to_string(matches.size()) +
                      " rows: " + printable(joined(matches)));
  }
  std::erase_if(rows, [&](const SweepRow& row) { return row.id != matches.front(); });
  if (rows.front().baseline_id != rows.front().id) rows.front().baseline_id.clear();
}

std::string effective_sha256(const Json& document, const SweepOptions& options) {
  const Json effective = {{"config", document},
                          {"set", options.set},
                          {"variants", options.variants},
                          {"filter", options.filter},
                          {"quick", options.quick}};
  return sha256_hex(effective.dump());
}

}  // namespace

std::string row_id(const std::string& operator_name, const std::string& variant, const Fields& problem) {
  std::vector<std::string> lines;
  lines.reserve(problem.size());
  for (const auto& [name, value] : problem) lines.push_back(name + "=" + to_string(value) + "\n");
  std::sort(lines.begin(), lines.end());  // an operator may show its fields in another order one day
  std::string text = operator_name + "\n" + variant + "\n";
  for (const std::string& line : lines) text += line;
  return sha256_hex(text).substr(0, kIdDigits);
}

Sweep parse_sweep(const std::string& text, const std::string& path, const SweepOptions& options) {
  const Json document = read_json(text, path);
  SweepConfig config = read_config(Cursor(path, document), path);
  apply_options(config, options);
  Sweep sweep{.path = path,
              .name = config.name,
              .question = config.question,
              .operator_name = config.op->name,
              .config_text = text,
              .config_sha256 = effective_sha256(document, options),
              .rows = expand(config),
              .measure = config.measure,
              .limits = config.limits};
  if (sweep.rows.empty()) throw ConfigError(path + ": no row is left: the conditions (where, --filter) leave out all");
  if (!options.row.empty()) select_row(sweep.rows, *config.op, options.row);
  return sweep;
}

Sweep load_sweep(const std::string& path, const SweepOptions& options) {
  return parse_sweep(read_text_file(path, kMaxConfigBytes, "config"), path, options);
}

}  // namespace inferometer
