#include "harness/results/markdown.hpp"

#include <algorithm>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <utility>

#include "harness/results/record_json.hpp"
#include "harness/results/status.hpp"
#include "harness/results/terminal.hpp"

namespace inferometer {
namespace {

struct Row {
  Record record;
  Json speedup;
};

struct File {
  std::string question;
  std::string baseline;
  std::string provenance;
  std::vector<Row> rows;
};

// Text that cannot break out of a table cell.
std::string cell(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r') {
      safe += ' ';
      continue;
    }
    if (c == '|' || c == '<' || c == '`' || c == '*' || c == '_' || c == '\\') safe += '\\';
    safe += c;
  }
  return safe;
}

std::string table_line(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (const std::string& text : cells) line += " " + text + " |";
  return line + "\n";
}

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

std::string baseline_of(const Json& config) {
  const auto baseline = config.find("baseline");
  if (baseline == config.end() || baseline->is_null()) return "";
  return baseline->is_string() ? baseline->get<std::string>() : baseline->at("variant").get<std::string>();
}

File read_file(const NamedResults& source) {
  try {
    if (text_from(source.json.at("schema")) != "inferometer.results/1")
      throw std::runtime_error("its schema is another one");
    File file{.question = source.json.at("config").value("question", source.json.at("name").get<std::string>()),
              .baseline = baseline_of(source.json.at("config")),
              .provenance = provenance_of(source.json),
              .rows = {}};
    for (const Json& row : source.json.at("rows")) file.rows.push_back({record_from_json(row), row.at("speedup")});
    return file;
  } catch (const std::exception& e) {
    throw std::runtime_error(source.path + " is no inferometer.results/1 file: " + e.what());
  }
}

std::string figure(const Row& row) {
  const Record& record = row.record;
  if (record.status != Status::ok || !record.timing) return cell(std::string(status_name(record.status)));
  std::string text = shown_time(record.timing->headline_ns);
  if (record.rates) {
    if (const std::string rate = shown_rate(*record.rates); !rate.empty()) text += ", " + rate;
  }
  if (row.speedup.is_number() && row.speedup.get<double>() != 1) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, ", **%.2fx**", row.speedup.get<double>());
    text += ratio;
  }
  return text;
}

// Names of the fields whose values differ between rows, in the operator's order.
std::vector<std::string> varying_fields(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  if (rows.empty()) return names;
  const Fields& first = rows.front().record.problem;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.record.problem[i] != first[i]; }))
      names.push_back(first[i].first);
  return names;
}

std::string fixed_fields(const File& file, const std::vector<std::string>& varying) {
  std::string text;
  for (const auto& [name, value] : file.rows.front().record.problem)
    if (std::find(varying.begin(), varying.end(), name) == varying.end())
      text += (text.empty() ? "" : ", ") + cell(name) + " " + cell(to_string(value));
  return text;
}

std::string table_of(const File& file, const std::vector<std::string>& varying) {
  std::vector<std::string> variants;
  std::vector<Fields> problems;
  std::map<std::pair<std::string, std::string>, const Row*> rows;  // (problem, variant)
  for (const Row& row : file.rows) {
    const Record& record = row.record;
    if (std::find(variants.begin(), variants.end(), record.variant) == variants.end())
      variants.push_back(record.variant);
    if (std::find(problems.begin(), problems.end(), record.problem) == problems.end())
      problems.push_back(record.problem);
    rows[{to_string(record.problem), record.variant}] = &row;
  }
  std::vector<std::string> header;
  for (const std::string& name : varying) header.push_back(cell(name));
  for (const std::string& name : variants) header.push_back(cell(name));
  std::string text = table_line(header) + table_line(std::vector<std::string>(header.size(), "---:"));
  for (const Fields& problem : problems) {
    std::vector<std::string> cells;
    for (const auto& [name, value] : problem)
      if (std::find(varying.begin(), varying.end(), name) != varying.end()) cells.push_back(cell(to_string(value)));
    for (const std::string& variant : variants) {
      const auto found = rows.find({to_string(problem), variant});
      cells.push_back(found == rows.end() ? "" : figure(*found->second));
    }
    text += table_line(cells);
  }
  return text;
}

// Why rows have no figure: each reason once, with how many rows it stands for.
std::string reasons_of(const File& file) {
  std::map<std::string, int> reasons;
  for (const Row& row : file.rows)
    if (row.record.status != Status::ok)
      ++reasons[cell(row.record.variant) + " " + cell(std::string(status_name(row.record.status))) + ": " +
                cell(row.record.reason)];
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += "- " + reason + " (" + std::to_string(count) + (count == 1 ? " row)\n" : " rows)\n");
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

std::string markdown_report(const std::vector<NamedResults>& files) {
  std::string text =
      "# Results\n\nMade by `./inferometer report` from the files named under each table; not edited by hand.\n\n";
  for (const NamedResults& source : files) {
    const File file = read_file(source);
    const std::vector<std::string> varying = varying_fields(file.rows);
    text += "## " + cell(file.question) + "\n\n";
    if (!file.rows.empty()) text += fixed_fields(file, varying) + ". ";
    if (!file.baseline.empty()) text += "Bold: speed-up over " + cell(file.baseline) + ". ";
    text += "\n\n";
    if (!file.rows.empty()) text += table_of(file, varying) + reasons_of(file) + "\n";
    text += "Source: [" + cell(source.path) + "](" + source.path + "); " + cell(file.provenance) + ".\n\n";
  }
  return text;
}

}  // namespace inferometer
