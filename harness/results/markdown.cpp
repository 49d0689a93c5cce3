#include "harness/results/markdown.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>

#include "harness/results/record_json.hpp"
#include "harness/results/status.hpp"
#include "harness/results/summary.hpp"
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

// Text that can become neither markup nor the end of its table cell.
std::string cell(const std::string& text) {
  constexpr std::string_view kMarkup = "|<`*_\\[]";
  std::string safe;
  for (const char c : text) {
    if (c == '\n' || c == '\r' || c == '\t') safe += ' ';
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) continue;  // control characters
    if (kMarkup.find(c) != std::string_view::npos) safe += '\\';
    safe += c;
  }
  return safe;
}

// A list of integers is not escaped: its brackets are ours, and no link follows them.
std::string cell(const Value& value) {
  const std::string text = to_string(value);
  return std::holds_alternative<std::vector<std::int64_t>>(value) ? text : cell(text);
}

// A path as the target of a link (RFC 3986: all but unreserved characters and '/' percent-encoded).
std::string link_target(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/";
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string target;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos) {
      target += c;
    } else {
      target += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return target;
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

void require_one_operator(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const std::string& first = rows.front().record.operator_name;
    if (row.record.operator_name != first)
      throw std::runtime_error("all rows must be of one operator, got " + first + " and " + row.record.operator_name);
  }
}

File read_file(const NamedResults& source) {
  try {
    if (text_from(source.json.at("schema")) != "inferometer.results/1")
      throw std::runtime_error("its schema is another one");
    File file{.question = source.json.at("config").value("question", source.json.at("name").get<std::string>()),
              .baseline = baseline_of(source.json.at("config")),
              .provenance = provenance_of(source.json),
              .rows = {}};
    const Json& rows = source.json.at("rows");
    if (!rows.is_array()) throw std::runtime_error("rows must be a list, got " + std::string(rows.type_name()));
    for (const Json& row : rows) file.rows.push_back({record_from_json(row), row.at("speedup")});
    require_one_operator(file.rows);
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

// The field's value in this row, ready for a cell; empty where the row lacks the field (another version wrote it).
std::string field_cell(const Row& row, const std::string& name) {
  const Fields& problem = row.record.problem;
  const auto field = std::find_if(problem.begin(), problem.end(), [&](const auto& pair) { return pair.first == name; });
  return field == problem.end() ? "" : cell(field->second);
}

struct FieldNames {
  std::vector<std::string> varying;  // the rows' values differ
  std::vector<std::string> fixed;
};

// The fields of all rows, each once, in the operator's order.
FieldNames field_names(const std::vector<Row>& rows) {
  FieldNames names;
  std::set<std::string> seen;
  for (const Row& row : rows) {
    for (const auto& [name, value] : row.record.problem) {
      if (!seen.insert(name).second) continue;
      const std::string first = field_cell(rows.front(), name);
      const bool varies = std::any_of(
          rows.begin(), rows.end(), [&, field = name](const Row& other) { return field_cell(other, field) != first; });
      (varies ? names.varying : names.fixed).push_back(name);
    }
  }
  return names;
}

std::string fixed_fields(const File& file, const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    text += (text.empty() ? "" : ", ") + cell(name) + " " + field_cell(file.rows.front(), name);
  return text;
}

std::string table_of(const File& file, const std::vector<std::string>& varying) {
  using Problem = std::vector<std::string>;  // the cells of the varying fields
  std::vector<std::string> variants;
  std::vector<Problem> problems;
  std::map<std::pair<Problem, std::string>, const Row*> rows;  // (problem, variant)
  for (const Row& row : file.rows) {
    const std::string& variant = row.record.variant;
    Problem problem;
    for (const std::string& name : varying) problem.push_back(field_cell(row, name));
    if (std::find(variants.begin(), variants.end(), variant) == variants.end()) variants.push_back(variant);
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(problem);
    rows[{std::move(problem), variant}] = &row;
  }
  std::vector<std::string> header;
  for (const std::string& name : varying) header.push_back(cell(name));
  for (const std::string& name : variants) header.push_back(cell(name));
  std::string text = table_line(header) + table_line(std::vector<std::string>(header.size(), "---:"));
  for (const Problem& problem : problems) {
    std::vector<std::string> cells = problem;
    for (const std::string& variant : variants) {
      const auto found = rows.find({problem, variant});
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
      std::string(kReportHeading) +
      "\n\nMade by `./inferometer report` from the files named under each table; not edited by hand.\n\n";
  for (const NamedResults& source : files) {
    const File file = read_file(source);
    const FieldNames names = field_names(file.rows);
    text += "## " + cell(file.question) + "\n\n";
    if (!file.rows.empty()) text += fixed_fields(file, names.fixed) + ". ";
    if (!file.baseline.empty()) text += "Bold: speed-up over " + cell(file.baseline) + ". ";
    text += "\n\n";
    for (const std::string& line : summary_lines(source.json)) text += "- " + cell(line) + "\n";
    text += "\n";
    if (!file.rows.empty()) text += table_of(file, names.varying) + reasons_of(file) + "\n";
    text += "Source: [" + cell(source.path) + "](" + link_target(source.path) + "); " + cell(file.provenance) + ".\n\n";
  }
  return text;
}

}  // namespace inferometer
