#include <algorithm>
#include <map>
#include <utility>

#include "harness/results/exports.hpp"

namespace inferometer {
namespace {

constexpr double kNsPerSecond = 1e9;
constexpr double kMadToDeviation = 1.4826;  // of a normal distribution: 1 / 0.6745

bool is_integer(const Json& value) { return value.is_number_integer(); }

// NVBench writes 64-bit integers as text, which other readers of JSON would round.
Json axis_value(const Json& value) {
  if (value.is_string()) return value;
  return to_line(value);
}

Json summary(const char* tag, const char* name, const char* hint, const Json& value) {
  return {{"tag", tag},
          {"name", name},
          {"hint", hint},
          {"data", Json::array({{{"name", "value"}, {"type", "float64"}, {"value", value}}})}};
}

Json summaries_of(const Json& row) {
  Json summaries = Json::array();
  const Json& timing = row.at("timing");
  if (timing.is_null()) return summaries;
  const Json& isolated = timing.at("isolated");
  const bool on_cpu = row.at("backend") == "cpu";
  if (const Json& median = isolated.at("median_ns"); median.is_number() && median > 0) {
    const double seconds = median.get<double>() / kNsPerSecond;
    summaries.push_back(summary(on_cpu ? "nv/cpu_only/time/cpu/mean" : "nv/cold/time/gpu/mean",
                                on_cpu ? "CPU Time" : "GPU Time", "duration", seconds));
    if (const Json& mad = isolated.at("mad_ns"); mad.is_number())
      summaries.push_back(summary(on_cpu ? "nv/cpu_only/time/cpu/stdev/relative" : "nv/cold/time/gpu/stdev/relative",
                                  "Noise", "percentage", kMadToDeviation * mad.get<double>() / median.get<double>()));
  }
  if (on_cpu) return summaries;  // NVBench's batches are a GPU's alone
  if (const Json& amortized = timing.at("amortized"); !amortized.is_null() && amortized.at("mean_ns").is_number())
    summaries.push_back(summary("nv/batch/time/gpu/mean", "Batch GPU", "duration",
                                amortized.at("mean_ns").get<double>() / kNsPerSecond));
  return summaries;
}

Json state_of(const Json& row) {
  std::string name = "Device=0";
  Json values = Json::array();
  for (const auto& [field, value] : row.at("problem").items()) {
    const Json shown = axis_value(value);
    name += " " + field + "=" + shown.get<std::string>();
    values.push_back({{"name", field}, {"type", is_integer(value) ? "int64" : "string"}, {"value", shown}});
  }
  Json state = {{"name", name},
                {"device", 0},
                {"type_config_index", 0},
                {"axis_values", values},
                {"summaries", summaries_of(row)},
                {"is_skipped", row.at("timing").is_null()}};
  if (row.at("timing").is_null())
    state["skip_reason"] = text_from(row.at("status")) + ": " + text_from(row.at("reason"));
  return state;
}

// Every value that a field takes in the rows of a benchmark.
Json axes_of(const std::vector<const Json*>& rows) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<Json>> values;
  for (const Json* row : rows) {
    for (const auto& [field, value] : row->at("problem").items()) {
      auto& known = values[field];
      if (known.empty()) order.push_back(field);
      if (std::find(known.begin(), known.end(), value) == known.end()) known.push_back(value);
    }
  }
  Json axes = Json::array();
  for (const std::string& field : order) {
    Json entries = Json::array();
    for (const Json& value : values.at(field))
      entries.push_back({{"input_string", axis_value(value)}, {"description", ""}, {"value", axis_value(value)}});
    axes.push_back({{"name", field},
                    {"type", is_integer(values.at(field).front()) ? "int64" : "string"},
                    {"flags", ""},
                    {"values", std::move(entries)}});
  }
  return axes;
}

Json device_of(const Json& gpu, std::size_t id) {
  return {{"id", id},
          {"name", gpu.at("name")},
          {"sm_version", 10 * std::int64_t{whole_from<std::int32_t>(gpu.at("sm"))}},
          {"number_of_sms", gpu.at("sm_count")},
          {"sm_default_clock_rate", 1'000'000 * std::int64_t{whole_from<std::int32_t>(gpu.at("max_sm_mhz"))}},
          {"global_memory_size", gpu.at("memory_bytes")},
          {"l2_cache_size", gpu.at("l2_bytes")}};
}

}  // namespace

std::string export_nvbench(const std::vector<Json>& results) {
  const Json version = {{"major", 1}, {"minor", 0}, {"patch", 0}, {"string", "1.0.0"}};
  Json json = {{"meta", {{"argv", Json::array({"inferometer"})}, {"version", {{"json", version}}}}},
               {"devices", Json::array()},
               {"benchmarks", Json::array()}};
  std::vector<std::pair<std::string, std::vector<const Json*>>> benchmarks;
  for (const Json& file : results) {
    if (const Json& gpu = file.at("environment").at("gpu"); !gpu.is_null() && json["devices"].empty())
      json["devices"].push_back(device_of(gpu, 0));
    for (const Json& row : file.at("rows")) {
      const std::string name = text_from(row.at("operator")) + "/" + text_from(row.at("variant"));
      auto found = std::find_if(benchmarks.begin(), benchmarks.end(), [&](const auto& b) { return b.first == name; });
      if (found == benchmarks.end()) found = benchmarks.insert(benchmarks.end(), {name, {}});
      found->second.push_back(&row);
    }
  }
  for (const auto& [name, rows] : benchmarks) {
    Json states = Json::array();
    for (const Json* row : rows) states.push_back(state_of(*row));
    json["benchmarks"].push_back({{"name", name},
                                  {"index", json["benchmarks"].size()},
                                  {"devices", Json::array({0})},
                                  {"axes", axes_of(rows)},
                                  {"states", std::move(states)}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace inferometer
