#include <cstdio>

#include "harness/results/exports.hpp"
#include "harness/results/status.hpp"

namespace inferometer {
namespace {

// As character data or in an attribute. XML 1.0 has no form at all for most control characters.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '&': result += "&amp;"; break;
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '"': result += "&quot;"; break;
      case '\n': result += "&#10;"; break;
      case '\t': result += "&#9;"; break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          char hex[8];
          std::snprintf(hex, sizeof hex, "\\x%02x", byte);
          result += hex;
        } else {
          result += c;
        }
    }
  }
  return result;
}

std::string attribute(const char* name, const std::string& value) {
  return std::string(" ") + name + "=\"" + escaped(value) + "\"";
}

double seconds_of(const Json& row) {
  const Json& timing = row.at("timing");
  return timing.is_null() || timing.at("headline_ns").is_null() ? 0 : timing.at("headline_ns").get<double>() * 1e-9;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9f", seconds);
  return text;
}

std::string test_case(const Json& row) {
  const std::string status = text_from(row.at("status"));
  const std::string reason = text_from(row.at("reason"));
  std::string text = "    <testcase" +
                     attribute("classname", text_from(row.at("operator")) + "." + text_from(row.at("variant"))) +
                     attribute("name", problem_word(row)) + attribute("time", seconds_text(seconds_of(row)));
  if (status == "ok") return text + "/>\n";
  if (status == "unsupported")
    return text + ">\n      <skipped" + attribute("message", reason) + "/>\n    </testcase>\n";
  return text + ">\n      <failure" + attribute("type", status) + attribute("message", reason) + ">" +
         escaped(text_from(row.at("reproduce"))) + "</failure>\n    </testcase>\n";
}

std::string test_suite(const Json& file) {
  std::size_t failures = 0;
  std::size_t skipped = 0;
  double seconds = 0;
  std::string cases;
  for (const Json& row : file.at("rows")) {
    const std::string status = text_from(row.at("status"));
    if (status == "unsupported") ++skipped;
    if (status != "ok" && status != "unsupported") ++failures;
    seconds += seconds_of(row);
    cases += test_case(row);
  }
  return "  <testsuite" + attribute("name", text_from(file.at("name"))) +
         attribute("tests", std::to_string(file.at("rows").size())) + attribute("failures", std::to_string(failures)) +
         attribute("errors", "0") + attribute("skipped", std::to_string(skipped)) +
         attribute("time", seconds_text(seconds)) + attribute("timestamp", text_from(file.at("started_at"))) + ">\n" +
         cases + "  </testsuite>\n";
}

}  // namespace

std::string export_junit(const std::vector<Json>& results) {
  std::string text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
  for (const Json& file : results) text += test_suite(file);
  return text + "</testsuites>\n";
}

}  // namespace inferometer
