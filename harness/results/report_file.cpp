#include "harness/results/report_file.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "harness/results/json_error_words.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/results_file.hpp"
#include "harness/results/shown_provenance.hpp"
#include "harness/results/summary.hpp"

namespace inferometer {
namespace {

std::string device_of(const Json& environment) {
  const Json& gpu = environment.at("gpu");
  if (gpu.is_null()) return environment.at("host").at("cpu_model");
  return gpu.at("name").get<std::string>() + ", driver " + gpu.at("driver").get<std::string>() + ", CUDA " +
         gpu.at("cuda_runtime").get<std::string>();
}

// The devices and commits of all parts, where a file was merged: parts may differ in both.
std::string provenance_of(const Json& json) {
  const Json& environment = json.at("environment");
  std::vector<std::string> devices{device_of(environment)};
  std::vector<std::string> commits{shown_commit(environment.at("program"))};
  const auto add = [](std::vector<std::string>& all, const std::string& text) {
    if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
  };
  for (const Json& part : json.value("parts", Json::array())) {
    const Json& of = part.at("environment");
    if (!of.at("gpu").is_null() || environment.at("gpu").is_null()) add(devices, device_of(of));
    add(commits, shown_commit(of.at("program")));
  }
  const auto joined = [](const std::vector<std::string>& all) {
    std::string text;
    for (const std::string& one : all) text += (text.empty() ? "" : " and ") + one;
    return text;
  };
  return joined(devices) + "; " + day_of(json.at("started_at")) + "; commit " + joined(commits);
}

void require_one_operator(const std::vector<ReportRow>& rows) {
  for (const ReportRow& row : rows) {
    const std::string& first = rows.front().record.operator_name;
    if (row.record.operator_name != first)
      throw std::runtime_error("all rows must be of one operator, got " + first + " and " + row.record.operator_name);
  }
}

void choose_columns(ReportFile& file, const Json& config) {
  if (file.rows.empty()) return;
  std::vector<const Fields*> problems;
  std::vector<const Record*> records;
  for (const ReportRow& row : file.rows) {
    problems.push_back(&row.record.problem);
    records.push_back(&row.record);
  }
  const std::string& operator_name = file.rows.front().record.operator_name;
  file.fields = shown_fields(config, operator_name, problems);
  file.metrics = metric_columns(operator_name, records);
}

}  // namespace

ReportFile read_report_file(const NamedResults& source) {
  try {
    if (text_from(source.json.at("schema")) != kResultsSchema) throw std::runtime_error("its schema is another one");
    const Json& config = source.json.at("config");
    ReportFile file{.question = config.value("question", source.json.at("name").get<std::string>()),
                    .baseline = baseline_variant(config),
                    .provenance = provenance_of(source.json),
                    .rows = {},
                    .fields = {},
                    .metrics = {}};
    const Json& rows = source.json.at("rows");
    if (!rows.is_array()) throw std::runtime_error("rows must be a list, got " + std::string(rows.type_name()));
    for (const Json& row : rows) {
      const Json& speedup = row.at("speedup");
      file.rows.push_back({.record = record_from_json(row),
                           .speedup = speedup.is_number() ? std::optional(speedup.get<double>()) : std::nullopt});
    }
    require_one_operator(file.rows);
    choose_columns(file, config);
    return file;
  } catch (const std::exception& e) {
    throw std::runtime_error(source.path + " is no " + std::string(kResultsSchema) +
                             " file: " + without_json_tags(e.what()));
  }
}

}  // namespace inferometer
