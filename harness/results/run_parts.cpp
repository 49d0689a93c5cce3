#include "harness/results/run_parts.hpp"

#include <algorithm>

#include "harness/results/doctor.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

void add_distinct(std::vector<std::string>& all, std::string text) {
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(std::move(text));
}

void add_absent(Json& all, Json one) {
  if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(std::move(one));
}

}  // namespace

std::string device_name(const Record& record, const DeviceReport& report) {
  if (record.backend == "cpu") return "cpu";
  return report.gpu ? report.gpu->uuid : "";
}

std::string device_names(const std::vector<DeviceReport>& reports) {
  std::vector<std::string> names;
  for (const DeviceReport& report : reports)
    add_distinct(names, report.gpu ? report.gpu->uuid + " " + report.gpu->name : read_host_info().cpu_model);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::vector<std::string> lockable_devices(const std::vector<DeviceReport>& reports) {
  std::vector<std::string> names;
  for (const DeviceReport& report : reports) add_distinct(names, report.gpu ? report.gpu->uuid : "cpu");
  return names;
}

void note_parts(Json& results, const Sweep& sweep, const std::vector<DeviceReport>& reports) {
  if (sweep.shard)
    results["shard"] = {
        {"index", sweep.shard->index}, {"count", sweep.shard->count}, {"sweep_rows", sweep.shard->sweep_rows}};
  if (lockable_devices(reports).size() < 2) return;
  Json& environment = results["environment"];
  Json gpus = Json::array();
  for (const DeviceReport& report : reports)
    if (report.gpu) gpus.push_back(device_report_json(report).at("gpu"));
  environment["gpus"] = std::move(gpus);
  for (std::size_t i = 1; i < reports.size(); ++i) {  // the environment is that of the first
    for (Json& examined : examined_json(reports[i])) environment["examined"].push_back(std::move(examined));
    for (Json& finding : findings_json(findings(reports[i]))) add_absent(environment["findings"], std::move(finding));
  }
}

}  // namespace inferometer
