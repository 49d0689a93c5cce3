#include "harness/results/markdown.hpp"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "harness/results/markdown_table.hpp"
#include "harness/results/markdown_text.hpp"
#include "harness/results/record_json.hpp"
#include "harness/results/shown_fields.hpp"
#include "harness/results/status.hpp"
#include "harness/results/summary.hpp"

namespace inferometer {
namespace {

struct File {
  std::string question;
  std::string baseline;
  std::string provenance;
  std::vector<MarkdownRow> rows;
  ShownFields fields;
  MetricColumns metrics;
};

std::string provenance_of(const Json& json) {
  const Json& environment = json.at("environment");
  const Json& program = environment.at("program");
  const Json& gpu = environment.at("gpu");
  std::string text = gpu.is_null()
                         ? environment.at("host").at("cpu_model").get<std::string>()
                         : gpu.at("name").get<std::string>() + ", driver " + gpu.at("driver").get<std::string>() +
                               ", CUDA " + gpu.at("cuda_runtime").get<std::string>();
  text += "; " + json.at("started_at").get<std::string>().substr(0, 10) + "; commit " +
          program.at("git_commit").get<std::string>().substr(0, 10);
  if (program.at("git_dirty").get<bool>()) text += " with changes";
  return text;
}

void require_one_operator(const std::vector<MarkdownRow>& rows) {
  for (const MarkdownRow& row : rows) {
    const std::string& first = rows.front().record.operator_name;
    if (row.record.operator_name != first)
      throw std::runtime_error("all rows must be of one operator, got " + first + " and " + row.record.operator_name);
  }
}

void choose_columns(File& file, const Json& config) {
  if (file.rows.empty()) return;
  std::vector<const Fields*> problems;
  std::vector<const Record*> records;
  for (const MarkdownRow& row : file.rows) {
    problems.push_back(&row.record.problem);
    records.push_back(&row.record);
  }
  const std::string& operator_name = file.rows.front().record.operator_name;
  file.fields = shown_fields(config, operator_name, problems);
  file.metrics = metric_columns(operator_name, records);
}

File read_file(const NamedResults& source) {
  try {
    if (text_from(source.json.at("schema")) != "inferometer.results/1")
      throw std::runtime_error("its schema is another one");
    const Json& config = source.json.at("config");
    File file{.question = config.value("question", source.json.at("name").get<std::string>()),
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
    throw std::runtime_error(source.path + " is no inferometer.results/1 file: " + e.what());
  }
}

// "batch 1, dtype f16. Bold: speed-up over cuda.materialized.", or what of it there is to say.
std::string heading_of(const File& file) {
  std::string text;
  for (const std::string& name : file.fields.fixed)
    text += (text.empty() ? "" : ", ") + markdown_cell(name) + " " + markdown_field(file.rows.front(), name);
  if (!text.empty()) text += ".";
  const bool bold = std::any_of(file.rows.begin(), file.rows.end(),
                                [&](const MarkdownRow& row) { return is_speedup_shown(row, file.metrics); });
  if (bold && !file.baseline.empty())
    text += (text.empty() ? "" : " ") + ("Bold: speed-up over " + markdown_cell(file.baseline)) + ".";
  return text;
}

// Why rows have no figure: each reason once, with how many rows it stands for.
std::string reasons_of(const File& file) {
  std::map<std::string, int> reasons;
  for (const MarkdownRow& row : file.rows)
    if (row.record.status != Status::ok)
      ++reasons[markdown_cell(row.record.variant) + " " + markdown_cell(std::string(status_name(row.record.status))) +
                ": " + markdown_cell(row.record.reason)];
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += "- " + reason + " (" + std::to_string(count) + (count == 1 ? " row)\n" : " rows)\n");
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string markdown_report(const std::vector<NamedResults>& files) {
  std::string text =
      std::string(kReportHeading) +
      "\n\nMade by `./inferometer report` from the files named under each table; not edited by hand.\n\n";
  for (const NamedResults& source : files) {
    const File file = read_file(source);
    text += "## " + markdown_cell(file.question) + "\n\n";
    if (const std::string heading = heading_of(file); !heading.empty()) text += heading + "\n\n";
    for (const std::string& line : summary_lines(source.json)) text += "- " + markdown_cell(line) + "\n";
    text += "\n";
    if (!file.rows.empty())
      text += markdown_table(file.rows, file.fields.varying, file.metrics) + reasons_of(file) + "\n";
    text += "Source: [" + markdown_cell(source.path) + "](" + markdown_link_target(source.path) + "); " +
            markdown_cell(file.provenance) + ".\n\n";
  }
  return text;
}

}  // namespace inferometer
