// JSON as this project writes it: fields in a fixed order, numbers finite or null.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace inferometer {

using Json = nlohmann::ordered_json;  // a reader finds the fields in the order of the documentation

// One line, valid UTF-8 whatever came in (a crashed process's last words need not be text).
inline std::string to_line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

inline Json or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// A number that was not finite was written as null and comes back as NaN.
double real_from(const Json& json);
std::optional<double> optional_real_from(const Json& json);
std::string text_from(const Json& json);  // null: empty

// The library's own conversion rounds and wraps what is no whole number of type T; this one throws std::runtime_error.
template <std::integral T>
T whole_from(const Json& json) {
  const bool fits = json.is_number_unsigned()  ? std::in_range<T>(json.get<std::uint64_t>())
                    : json.is_number_integer() ? std::in_range<T>(json.get<std::int64_t>())
                                               : false;
  if (!fits) throw std::runtime_error("expected a whole number in range, got " + to_line(json));
  return json.get<T>();
}

template <std::integral T>
std::vector<T> wholes_from(const Json& json) {
  if (!json.is_array()) throw std::runtime_error("expected whole numbers, got " + to_line(json));
  std::vector<T> values;
  values.reserve(json.size());
  for (const Json& value : json) values.push_back(whole_from<T>(value));
  return values;
}

// Turns every NaN and infinity under `json` into null; returns their paths, "metrics.tokens_per_s".
std::vector<std::string> null_non_finite(Json& json);

}  // namespace inferometer
