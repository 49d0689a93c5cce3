// Configs over attention_prefill, for tests that change one thing.
#pragma once

#include <string>
#include <vector>

#include "harness/sweep/sweep.hpp"

namespace inferometer::test {

// A valid config whose members after "variants" are `members` (", \"axes\": ..." without the first comma).
inline std::string config_with(const std::string& members) {
  return R"({"schema": "inferometer.sweep/1", "name": "t", "operator": "attention_prefill",
 "variants": ["cpu.naive", "cpu.flash"])" +
         (members.empty() ? "" : ",\n " + members) + "}";
}

// The message of the ConfigError; "accepted" without one.
inline std::string refusal(const std::string& text, const SweepOptions& options = {}) {
  try {
    parse_sweep(text, "c.json", options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

inline std::string refusal_with(const std::string& members, const SweepOptions& options = {}) {
  return refusal(config_with(members), options);
}

// "variant: field=value ..." of each row, only the fields named.
inline std::vector<std::string> rows_of(const std::string& members, const std::vector<std::string>& fields,
                                        const SweepOptions& options = {}) {
  std::vector<std::string> lines;
  for (const SweepRow& row : parse_sweep(config_with(members), "c.json", options).rows) {
    std::string line = row.variant + ":";
    for (const auto& [name, value] : row.problem)
      for (const std::string& field : fields)
        if (field == name) line += " " + name + "=" + to_string(value);
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace inferometer::test
