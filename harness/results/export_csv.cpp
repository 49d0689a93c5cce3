#include <algorithm>
#include <utility>

#include "harness/results/exports.hpp"

namespace inferometer {
namespace {

// Where a column's value stands in a row, and what it is called.
struct Column {
  std::string name;
  std::string pointer;  // RFC 6901
};

// What each row may have; fields and metrics are found in the rows.
const std::vector<Column>& known_columns() {
  static const std::vector<Column> columns{{"status", "/status"},
                                           {"reason", "/reason"},
                                           {"headline", "/timing/headline"},
                                           {"headline_ns", "/timing/headline_ns"},
                                           {"isolated_median_ns", "/timing/isolated/median_ns"},
                                           {"isolated_ci_low_ns", "/timing/isolated/ci_low_ns"},
                                           {"isolated_ci_high_ns", "/timing/isolated/ci_high_ns"},
                                           {"isolated_p5_ns", "/timing/isolated/p5_ns"},
                                           {"isolated_p95_ns", "/timing/isolated/p95_ns"},
                                           {"isolated_samples", "/timing/isolated/samples"},
                                           {"cache", "/timing/isolated/cache"},
                                           {"amortized_mean_ns", "/timing/amortized/mean_ns"},
                                           {"flops", "/work/flops"},
                                           {"bytes", "/work/bytes"},
                                           {"flops_per_s", "/rates/flops_per_s"},
                                           {"bytes_per_s", "/rates/bytes_per_s"},
                                           {"fraction_of_ceiling", "/rates/fraction_of_ceiling"},
                                           {"limit", "/rates/limit"},
                                           {"speedup", "/speedup"},
                                           {"rel_l2_error", "/check/rel_l2_error"},
                                           {"peak_bytes", "/memory/peak_bytes"}};
  return columns;
}

std::string cell(const Json& value) {
  if (value.is_null()) return {};
  std::string text = value.is_string() ? value.get<std::string>() : to_line(value);
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

// In the order in which the rows bring them.
std::vector<std::string> names_under(const std::vector<Json>& results, const char* member) {
  std::vector<std::string> names;
  for (const Json& file : results)
    for (const Json& row : file.at("rows"))
      for (const auto& [name, value] : row.at(member).items())
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  return names;
}

std::string value_at(const Json& row, const std::string& pointer) {
  const Json::json_pointer place(pointer);
  return row.contains(place) ? cell(row.at(place)) : std::string();
}

std::string value_of(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? std::string() : cell(*found);
}

}  // namespace

std::string export_csv(const std::vector<Json>& results) {
  const std::vector<std::string> fields = names_under(results, "problem");
  const std::vector<std::string> metrics = names_under(results, "metrics");
  std::string text = "sweep,id,operator,variant,device";
  for (const std::string& name : fields) text += "," + cell(name);
  for (const Column& column : known_columns()) text += "," + column.name;
  for (const std::string& name : metrics) text += "," + cell(name);
  text += "\r\n";
  for (const Json& file : results) {
    for (const Json& row : file.at("rows")) {
      text += cell(file.at("name"));
      for (const char* name : {"id", "operator", "variant", "device"}) text += "," + value_of(row, name);
      for (const std::string& name : fields) text += "," + value_of(row.at("problem"), name);
      for (const Column& column : known_columns()) text += "," + value_at(row, column.pointer);
      for (const std::string& name : metrics) text += "," + value_of(row.at("metrics"), name);
      text += "\r\n";
    }
  }
  return text;
}

}  // namespace inferometer
