#include "harness/results/json.hpp"

#include <cmath>
#include <limits>

namespace inferometer {
namespace {

void visit(Json& json, const std::string& path, std::vector<std::string>& found) {
  if (json.is_number_float() && !std::isfinite(json.get<double>())) {
    json = nullptr;
    found.push_back(path);
  } else if (json.is_object()) {
    for (auto& [key, value] : json.items()) {
      std::string member = path;
      member.append(path.empty() ? "" : ".").append(key);
      visit(value, member, found);
    }
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      std::string element = path;
      element.append("[").append(std::to_string(i)).append("]");
      visit(json[i], element, found);
    }
  }
}

}  // namespace

double real_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

std::optional<double> optional_real_from(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<double>());
}

std::string text_from(const Json& json) { return json.is_null() ? std::string() : json.get<std::string>(); }

std::vector<std::string> null_non_finite(Json& json) {
  std::vector<std::string> found;
  visit(json, "", found);
  return found;
}

}  // namespace inferometer
