#include "harness/results/html/chart_data.hpp"

#include <algorithm>
#include <string_view>

#include "harness/operator/registry.hpp"
#include "harness/results/row_commands.hpp"

namespace inferometer {
namespace {

// The fields that an axis sets: an alias names several.
std::vector<std::string> fields_of(const std::string& axis, const Operator* op) {
  if (op != nullptr)
    for (const FieldAlias& alias : op->aliases)
      if (alias.name == axis) return {alias.targets.begin(), alias.targets.end()};
  return {axis};
}

Json swept_fields(const Json& config, const Operator* op) {
  Json fields = Json::array();
  if (const auto axes = config.find("axes"); axes != config.end() && axes->is_object())
    for (const auto& [axis, values] : axes->items())
      for (const std::string& name : fields_of(axis, op)) fields.push_back(name);
  return fields;
}

Json treatment_fields(const Json& config) {
  Json fields = Json::array();
  const auto baseline = config.find("baseline");
  if (baseline == config.end() || !baseline->is_object() || !baseline->contains("problem")) return fields;
  for (const auto& [name, value] : baseline->at("problem").items()) fields.push_back(name);
  return fields;
}

Json metric_list(const MetricColumns& metrics) {
  Json list = Json::array();
  for (const std::string& name : metrics.names) list.push_back({{"name", name}, {"label", metric_label(name)}});
  return list;
}

Json row_data(const Json& row) {
  Json data = Json::object();
  for (const char* name : {"id", "variant", "backend", "problem", "status", "reason", "check", "timing", "work",
                           "rates", "memory", "metrics", "speedup", "speedup_ci", "reproduce"})
    data[name] = row.at(name);
  if (row.contains("versions")) data["versions"] = row.at("versions");
  data["profile"] = profile_line(text_from(row.at("reproduce")));
  return data;
}

}  // namespace

Json chart_data(const ReportFile& file, const Json& results) {
  const Json& config = results.at("config");
  const Operator* op = file.rows.empty() ? nullptr : find_operator(file.rows.front().record.operator_name);
  Json rows = Json::array();
  for (const Json& row : results.at("rows")) rows.push_back(row_data(row));
  return {{"question", file.question},
          {"baseline", file.baseline},
          {"axes", swept_fields(config, op)},
          {"treatment", treatment_fields(config)},
          {"varying", file.fields.varying},
          {"metrics", metric_list(file.metrics)},
          {"metrics_first", file.metrics.first},
          {"ceilings", results.at("environment").at("ceilings")},
          {"rows", std::move(rows)}};
}

}  // namespace inferometer
