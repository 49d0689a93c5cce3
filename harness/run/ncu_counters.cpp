#include "harness/run/ncu_counters.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>

#include "harness/results/build_info.hpp"
#include "harness/results/compare.hpp"
#include "harness/results/status.hpp"
#include "harness/sweep/sweep.hpp"

namespace inferometer {
namespace {

// The text at `pointer`; empty where there is none.
std::string text_at(const Json& json, const char* pointer) {
  const Json::json_pointer at(pointer);
  return json.contains(at) && json.at(at).is_string() ? json.at(at).get<std::string>() : "";
}

}  // namespace

std::vector<Metric> counter_metrics(const std::vector<KernelCounters>& kernels, int launches) {
  if (kernels.empty() || kernels.size() % static_cast<std::size_t>(launches) != 0)
    throw std::runtime_error("ncu counted " + std::to_string(kernels.size()) + " kernels in " +
                             std::to_string(launches) + " launches of the row, which do not share them evenly");
  KernelCounters sum;
  for (const KernelCounters& kernel : kernels) {
    sum.time_ns += kernel.time_ns;
    sum.dram_bytes += kernel.dram_bytes;
    sum.tensor_pipe_ratio += kernel.time_ns * kernel.tensor_pipe_ratio;
    sum.occupancy_ratio += kernel.time_ns * kernel.occupancy_ratio;
  }
  if (!(sum.time_ns > 0)) throw std::runtime_error("ncu gives the row's kernels no time");
  return {{"ncu_kernels", static_cast<double>(kernels.size()) / launches},
          {"ncu_time_ns", sum.time_ns / launches},
          {"ncu_dram_bytes", sum.dram_bytes / launches},
          {"ncu_tensor_pipe_ratio", sum.tensor_pipe_ratio / sum.time_ns},
          {"ncu_occupancy_ratio", sum.occupancy_ratio / sum.time_ns}};
}

Json& row_for_counters(Json& results, const std::string& id, const std::string& path) {
  try {
    require_results(results);
  } catch (const std::runtime_error& error) {
    throw ConfigError(path + " " + error.what());
  }
  if (!results.contains("rows") || !results.at("rows").is_array()) throw ConfigError(path + " has no list of rows");
  Json& rows = results.at("rows");
  const auto row = std::find_if(rows.begin(), rows.end(), [&](const Json& one) { return text_at(one, "/id") == id; });
  if (row == rows.end()) throw ConfigError(path + " has no row " + id);
  const auto status = parse_status(text_at(*row, "/status"));
  if (!status || !has_timing(*status) || !row->contains("metrics") || !row->at("metrics").is_object())
    throw ConfigError(path + ": row " + id + " has no time that counters could be set beside: it is " +
                      text_at(*row, "/status"));
  if (text_at(results, "/environment/program/kernels_sha256") != build_info().kernels_sha256)
    throw ConfigError(path + " was measured with other kernels than this program's: run the row again");
  return *row;
}

void require_same_sm(const Json& results, const std::vector<KernelCounters>& kernels) {
  const Json sm_json = results.value(Json::json_pointer("/environment/gpu/sm"), Json(nullptr));
  if (!sm_json.is_number_integer()) return;  // none was opened in that run
  const auto sm = sm_json.get<std::int64_t>();
  for (const KernelCounters& kernel : kernels)
    if (kernel.sm != sm)
      throw std::runtime_error("the row was measured on sm_" + std::to_string(sm) + ", ncu counted on sm_" +
                               std::to_string(kernel.sm));
}

void set_metrics(Json& row, const std::vector<Metric>& metrics) {
  for (const Metric& metric : metrics) row.at("metrics")[metric.name] = metric.value;
}

}  // namespace inferometer
