#include "harness/results/cache_warnings.hpp"

#include <algorithm>

namespace inferometer {
namespace {

// Null where there is none.
const Json& member(const Json& json, const char* name) {
  static const Json none;
  const auto found = json.find(name);  // the end for what is no object
  return found == json.end() ? none : *found;
}

std::string word(const Json& json) { return json.is_string() ? json.get<std::string>() : ""; }

void add_of_device(std::vector<std::string>& warnings, const Json& examined, const Json& rows) {
  const std::string device = word(member(examined, "device"));
  const auto warn = [&](const char* verdict, const char* estimator, const std::string& rows_are) {
    if (word(member(examined, verdict)) != "fails") return;
    const auto count = std::count_if(rows.begin(), rows.end(), [&](const Json& row) {
      return word(member(row, "device")) == device &&
             word(member(member(member(row, "timing"), estimator), "cache")) == "cold";
    });
    if (count == 0) return;
    std::string warning = std::to_string(count) + (count == 1 ? " row" : " rows") + " on " + device + rows_are;
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end()) warnings.push_back(std::move(warning));
  };
  warn("cache_clear", "isolated",
       " said to be cold: the isolated times are not, for clearing the cache left data in it, as the file's "
       "findings say");
  warn("cache_rotation", "amortized",
       " said to be cold: the amortized times are not, for input sets that should have displaced each other stayed in "
       "the cache");
}

}  // namespace

std::vector<std::string> cache_warnings(const Json& results) {
  std::vector<std::string> warnings;
  const Json& rows = member(results, "rows");
  const auto add = [&](const Json& environment) {
    for (const Json& examined : member(environment, "examined")) add_of_device(warnings, examined, rows);
  };
  add(member(results, "environment"));
  for (const Json& part : member(results, "parts")) add(member(part, "environment"));
  return warnings;
}

}  // namespace inferometer
