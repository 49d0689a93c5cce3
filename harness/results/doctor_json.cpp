#include "harness/results/build_info.hpp"
#include "harness/results/doctor.hpp"
#include "harness/results/doctor_events.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
Json findings_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) {
    Json one = finding.device.empty() ? Json::object() : Json{{"device", finding.device}};
    one.update(
        {{"severity", severity_name(finding.severity)}, {"topic", finding.topic}, {"sentence", finding.sentence}});
    json.push_back(std::move(one));
  }
  return json;
}

Json diagnosis_json(const Diagnosis& diagnosis, const std::vector<Finding>& findings) {
  DeviceReport devices;
  devices.gpu = diagnosis.gpu;
  devices.threads_used = diagnosis.threads_used;
  const Json environment = environment_json(diagnosis.host, devices, {});
  const HostState& host = diagnosis.host_state;
  const auto state = [](const std::optional<GpuState>& given) {
    return given ? gpu_state_json(*given) : Json(nullptr);
  };
  Json json = {{"schema", "inferometer.doctor/1"},
               {"program", environment.at("program")},
               {"host", environment.at("host")},
               {"host_state",
                {{"governor", or_null(host.governor)},
                 {"load_average", or_null(host.load_average)},
                 {"processor_quota", or_null(host.processor_quota)}}},
               {"cpu_measured", examination_json(diagnosis.cpu)},
               {"gpu", environment.at("gpu")},
               {"gpu_absent", or_null(diagnosis.gpu_absent)},
               {"gpu_at_rest", state(diagnosis.gpu_at_rest)},
               {"gpu_after_ceilings", state(diagnosis.gpu_after_ceilings)},
               {"gpu_measured", diagnosis.gpu_measured ? examination_json(*diagnosis.gpu_measured) : Json(nullptr)},
               {"gpu_events", diagnosis.event_cost ? event_cost_json(*diagnosis.event_cost) : Json(nullptr)},
               {"gpu_events_absent", or_null(diagnosis.event_cost_absent)},
               {"findings", findings_json(findings)}};
  json["program"].erase("argv");
  null_non_finite(json);
  return json;
}

}  // namespace inferometer
