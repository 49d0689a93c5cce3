#include "harness/claims/evidence.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <variant>

#include "harness/operator/fields.hpp"
#include "harness/operator/registry.hpp"
#include "harness/results/compare.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/shown_provenance.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

std::string device_of(const Json& environment) {
  const Json& gpu = environment.at("gpu");
  return (gpu.is_null() ? environment.at("host").at("cpu_model") : gpu.at("name")).get<std::string>();
}

// Whether the operator takes any text there: a file's path, a tensor's name.
bool takes_any_text(const Operator& op, const std::string& name) {
  return std::any_of(op.fields.begin(), op.fields.end(), [&](const FieldInfo& field) {
    return field.name == name && field.allowed.empty() && std::holds_alternative<std::string>(field.default_value);
  });
}

// The fields of `problem` in the operator's order, defaults where it has none.
Fields with_defaults(const Operator& op, const Fields& problem) {
  Fields all;
  for (const FieldInfo& field : op.fields) {
    const auto given =
        std::find_if(problem.begin(), problem.end(), [&](const auto& one) { return one.first == field.name; });
    all.emplace_back(field.name, given != problem.end() ? given->second : field.default_value);
  }
  return all;
}

// A merged file does not say of which part a row is, and no claim compares two devices.
void refuse_several_devices(const Json& results) {
  const Json& environment = results.at("environment");
  const std::string own = device_of(environment);
  for (const Json& part : results.value("parts", Json::array())) {
    const Json& of = part.at("environment");
    if (of.at("gpu").is_null() != environment.at("gpu").is_null()) continue;  // it ran rows of the processors alone
    if (const std::string other = device_of(of); other != own)
      throw std::runtime_error("was merged from parts on " + own + " and on " + other +
                               "; give the parts, each of which is of one device");
  }
}

EvidenceFile described(const NamedResults& results) {
  refuse_several_devices(results.json);
  const Json& environment = results.json.at("environment");
  EvidenceFile file{.path = results.path,
                    .commit = shown_commit(environment.at("program")),
                    .started_at = results.json.at("started_at").get<std::string>(),
                    .cpu = environment.at("host").at("cpu_model").get<std::string>(),
                    .gpu = {}};
  if (const Json& gpu = environment.at("gpu"); !gpu.is_null()) file.gpu = gpu.at("name").get<std::string>();
  return file;
}

}  // namespace

Fields problem_in_full(const Operator& op, const Fields& problem) {
  try {
    return op.describe(op.parse(problem).get());
  } catch (const ProblemError& error) {
    if (!takes_any_text(op, error.field())) throw;
    return with_defaults(op, problem);
  }
}

bool EvidenceRow::simulated() const {
  return std::any_of(record.metrics.begin(), record.metrics.end(),
                     [](const Metric& metric) { return metric.name == "simulated" && metric.value != 0; });
}

Evidence::Evidence(const std::vector<NamedResults>& results) {
  for (const NamedResults& one : results) {
    try {
      require_results(one.json);
      add(one);
    } catch (const std::exception& error) {  // what is missing or of another type, in the words of who looked for it
      throw ConfigError(one.path + ": " + error.what());
    }
  }
}

void Evidence::add(const NamedResults& results) {
  const std::size_t file = files_.size();
  files_.push_back(described(results));
  for (const Json& json : results.json.at("rows")) {
    EvidenceRow row{.record = record_from_json(json), .file = file};
    const Operator* op = find_operator(row.record.operator_name);
    if (op == nullptr) continue;
    row.record.problem = problem_in_full(*op, row.record.problem);
    places_[{file, row_id(op->name, row.record.variant, row.record.problem)}] = rows_.size();
    rows_.push_back(std::move(row));
  }
}

const EvidenceRow* Evidence::find(std::size_t file, const std::string& operator_name, const std::string& variant,
                                  const Fields& problem) const {
  const auto found = places_.find({file, row_id(operator_name, variant, problem)});
  return found == places_.end() ? nullptr : &rows_[found->second];
}

const std::string& Evidence::device_of(const EvidenceRow& row) const {
  const EvidenceFile& file = files_[row.file];
  return row.record.backend == "cpu" || file.gpu.empty() ? file.cpu : file.gpu;
}

}  // namespace inferometer
