// JSON as this project writes it: fields in a fixed order, numbers finite or null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
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

// Turns every NaN and infinity under `json` into null; returns their paths, "metrics.tokens_per_s".
std::vector<std::string> null_non_finite(Json& json);

}  // namespace inferometer
