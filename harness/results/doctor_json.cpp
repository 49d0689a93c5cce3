#include "harness/results/build_info.hpp"
#include "harness/results/doctor.hpp"
#include "harness/results/doctor_events.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

Json cache_json(const CacheCheck& check) {
  return {{"read_bytes", check.read_bytes},
          {"cold_ns", check.cold_ns},
          {"warm_ns", check.warm_ns},
          {"input_sets", check.input_sets},
          {"rotated_ns", or_null(check.rotated_ns)},
          {"repeated_ns", or_null(check.repeated_ns)},
          {"after_reading_ns", or_null(check.after_reading_ns)},
          {"after_memset_ns", or_null(check.after_memset_ns)}};
}

Json examination_json(const Examination& measured) {
  const Ceilings& ceilings = measured.ceilings;
  return {{"noise",
           {{"repeat_ratio", measured.noise.repeat_ratio},
            {"event_resolution_ns", measured.noise.event_resolution_ns},
            {"empty_launch_ns", measured.noise.empty_launch_ns}}},
          {"ceilings",
           {{"read_bytes_per_s", or_null(ceilings.read_bytes_per_s)},
            {"copy_bytes_per_s", or_null(ceilings.copy_bytes_per_s)},
            {"f16_flops_per_s", or_null(ceilings.f16_flops_per_s)},
            {"f32_flops_per_s", or_null(ceilings.f32_flops_per_s)},
            {"int8_ops_per_s", or_null(ceilings.int8_ops_per_s)}}},
          {"cache", measured.cache ? cache_json(*measured.cache) : Json(nullptr)},
          {"cache_absent", or_null(measured.cache_absent)}};
}

}  // namespace

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
               {"findings", Json::array()}};
  json["program"].erase("argv");
  for (const Finding& finding : findings)
    json["findings"].push_back(
        {{"severity", severity_name(finding.severity)}, {"topic", finding.topic}, {"sentence", finding.sentence}});
  null_non_finite(json);
  return json;
}

}  // namespace inferometer
