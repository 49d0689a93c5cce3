#include "harness/results/exports.hpp"

namespace inferometer {

const std::vector<ExportFormat>& export_formats() {
  static const std::vector<ExportFormat> formats{{"csv", &export_csv},
                                                 {"junit", &export_junit},
                                                 {"google-benchmark", &export_google_benchmark},
                                                 {"nvbench", &export_nvbench}};
  return formats;
}

std::string problem_word(const Json& row) {
  std::string word;
  for (const auto& [name, value] : row.at("problem").items()) {
    word += (word.empty() ? "" : "/") + name + ":";
    if (value.is_string()) {
      word += value.get<std::string>();
    } else {
      word += to_line(value);
    }
  }
  return word;
}

}  // namespace inferometer
