// The environment's half of record_json.hpp.
#include <utility>

#include "harness/results/build_info.hpp"
#include "harness/results/doctor.hpp"
#include "harness/results/record_json.hpp"

namespace inferometer {
namespace {

Json gpu_json(const std::optional<GpuInfo>& gpu) {
  if (!gpu) return nullptr;
  return {{"name", gpu->name},
          {"uuid", or_null(gpu->uuid)},
          {"sm", gpu->sm},
          {"sm_count", gpu->sm_count},
          {"memory_bytes", gpu->memory_bytes},
          {"l2_bytes", gpu->l2_bytes},
          {"driver", gpu->driver},
          {"cuda_runtime", gpu->cuda_runtime},
          {"max_sm_mhz", gpu->max_sm_mhz},
          {"power_limit_w", gpu->power_limit_w}};
}

std::optional<GpuInfo> gpu_from(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return GpuInfo{.name = json.at("name"),
                 .sm = whole_from<int>(json.at("sm")),
                 .sm_count = whole_from<int>(json.at("sm_count")),
                 .memory_bytes = whole_from<std::size_t>(json.at("memory_bytes")),
                 .l2_bytes = whole_from<std::size_t>(json.at("l2_bytes")),
                 .driver = json.at("driver"),
                 .cuda_runtime = json.at("cuda_runtime"),
                 .max_sm_mhz = whole_from<int>(json.at("max_sm_mhz")),
                 .power_limit_w = real_from(json.at("power_limit_w")),
                 .uuid = text_from(json.at("uuid"))};
}

Json ceilings_json(const Ceilings& gpu, const Ceilings& cpu) {
  return {
      {"gpu_read_bytes_per_s", or_null(gpu.read_bytes_per_s)}, {"gpu_copy_bytes_per_s", or_null(gpu.copy_bytes_per_s)},
      {"gpu_f16_flops_per_s", or_null(gpu.f16_flops_per_s)},   {"gpu_f32_flops_per_s", or_null(gpu.f32_flops_per_s)},
      {"gpu_int8_ops_per_s", or_null(gpu.int8_ops_per_s)},     {"cpu_read_bytes_per_s", or_null(cpu.read_bytes_per_s)},
      {"cpu_copy_bytes_per_s", or_null(cpu.copy_bytes_per_s)}, {"cpu_f32_flops_per_s", or_null(cpu.f32_flops_per_s)}};
}

Json noise_json(const Noise& noise) {
  return {{"repeat_ratio", noise.repeat_ratio},
          {"event_resolution_ns", noise.event_resolution_ns},
          {"empty_kernel_ns", noise.empty_launch_ns}};
}

Noise noise_from(const Json& json) {
  return {.repeat_ratio = real_from(json.at("repeat_ratio")),
          .event_resolution_ns = real_from(json.at("event_resolution_ns")),
          .empty_launch_ns = real_from(json.at("empty_kernel_ns"))};
}

Json checked_cache_json(const CheckedCache& cache) {
  return {{"check", cache.check ? cache_check_json(*cache.check) : Json(nullptr)}, {"absent", or_null(cache.absent)}};
}

CheckedCache checked_cache_from(const Json& json) {
  const Json& check = json.at("check");
  return {.check = check.is_null() ? std::nullopt : std::optional(cache_check_from_json(check)),
          .absent = text_from(json.at("absent"))};
}

Json state_json(const MachineState& state) {
  return {{"governor", or_null(state.host.governor)},
          {"load_average", or_null(state.host.load_average)},
          {"processor_quota", or_null(state.host.processor_quota)},
          {"gpu", state.gpu ? gpu_state_json(*state.gpu) : Json(nullptr)}};
}

template <class T>
std::optional<T> optional_from(const Json& json, const char* name) {
  const Json& value = json.at(name);
  return value.is_null() ? std::nullopt : std::optional(value.get<T>());
}

GpuState gpu_state_from(const Json& gpu) {
  const auto whole = [&](const char* name) {
    return gpu.at(name).is_null() ? std::nullopt : std::optional(whole_from<int>(gpu.at(name)));
  };
  return {.persistence = optional_from<bool>(gpu, "persistence"),
          .sm_mhz = whole("sm_mhz"),
          .memory_mhz = whole("memory_mhz"),
          .temperature_c = whole("temperature_c"),
          .power_w = optional_real_from(gpu.at("power_w")),
          .other_processes = whole("other_processes"),
          .clock_limits = gpu.at("clock_limits").get<std::vector<std::string>>()};
}

MachineState state_from(const Json& json) {
  MachineState state;
  state.host = {.governor = optional_from<std::string>(json, "governor"),
                .load_average = optional_real_from(json.at("load_average")),
                .processor_quota = optional_real_from(json.at("processor_quota"))};
  const Json& gpu = json.at("gpu");
  if (!gpu.is_null()) state.gpu = gpu_state_from(gpu);
  return state;
}

}  // namespace

Json gpu_state_json(const GpuState& state) {
  return {{"persistence", or_null(state.persistence)}, {"sm_mhz", or_null(state.sm_mhz)},
          {"memory_mhz", or_null(state.memory_mhz)},   {"temperature_c", or_null(state.temperature_c)},
          {"power_w", or_null(state.power_w)},         {"other_processes", or_null(state.other_processes)},
          {"clock_limits", state.clock_limits}};
}

Json device_report_json(const DeviceReport& report) {
  Json json = {
      {"gpu", gpu_json(report.gpu)},
      {"gpu_absent", or_null(report.gpu_absent)},
      {"ceilings", ceilings_json(report.gpu_ceilings, report.cpu_ceilings)},
      {"noise", noise_json(report.noise)},
      {"threads_used", report.threads_used},
      {"at_start", state_json(report.at_start)},
      {"gpu_after_ceilings", report.gpu_after_ceilings ? gpu_state_json(*report.gpu_after_ceilings) : Json(nullptr)},
      {"cpu_noise", report.cpu_noise ? noise_json(*report.cpu_noise) : Json(nullptr)},
      {"cpu_cache", checked_cache_json(report.cpu_cache)},
      {"gpu_cache", checked_cache_json(report.gpu_cache)}};
  null_non_finite(json);
  return json;
}

DeviceReport device_report_from_json(const Json& json) {
  const Json& ceilings = json.at("ceilings");
  const auto rate = [&](const char* name) { return optional_real_from(ceilings.at(name)); };
  DeviceReport report;
  report.gpu = gpu_from(json.at("gpu"));
  report.gpu_absent = text_from(json.at("gpu_absent"));
  report.gpu_ceilings = {.read_bytes_per_s = rate("gpu_read_bytes_per_s"),
                         .copy_bytes_per_s = rate("gpu_copy_bytes_per_s"),
                         .f16_flops_per_s = rate("gpu_f16_flops_per_s"),
                         .f32_flops_per_s = rate("gpu_f32_flops_per_s"),
                         .int8_ops_per_s = rate("gpu_int8_ops_per_s")};
  report.cpu_ceilings = {.read_bytes_per_s = rate("cpu_read_bytes_per_s"),
                         .copy_bytes_per_s = rate("cpu_copy_bytes_per_s"),
                         .f16_flops_per_s = std::nullopt,
                         .f32_flops_per_s = rate("cpu_f32_flops_per_s"),
                         .int8_ops_per_s = std::nullopt};
  report.noise = noise_from(json.at("noise"));
  report.threads_used = whole_from<int>(json.at("threads_used"));
  if (json.contains("at_start")) report.at_start = state_from(json.at("at_start"));  // older versions wrote none
  if (!json.contains("cpu_noise")) return report;                                    // nor what follows
  if (const Json& state = json.at("gpu_after_ceilings"); !state.is_null())
    report.gpu_after_ceilings = gpu_state_from(state);
  if (const Json& noise = json.at("cpu_noise"); !noise.is_null()) report.cpu_noise = noise_from(noise);
  report.cpu_cache = checked_cache_from(json.at("cpu_cache"));
  report.gpu_cache = checked_cache_from(json.at("gpu_cache"));
  return report;
}

Json examined_json(const DeviceReport& report) {
  Json json = Json::array();
  for (const ExaminedDevice& one : examined_devices(report)) {
    Json device = {{"device", one.device}};
    device.update(examination_json(one.measured));
    json.push_back(std::move(device));
  }
  null_non_finite(json);
  return json;
}

Json environment_json(const HostInfo& host, const DeviceReport& devices, const std::vector<std::string>& argv) {
  const BuildInfo& build = build_info();
  const Json report = device_report_json(devices);
  return {{"program",
           {{"version", build.version},
            {"git_commit", build.git_commit},
            {"git_dirty", build.git_dirty},
            {"kernels_sha256", build.kernels_sha256},
            {"build_type", build.build_type},
            {"compiler", build.compiler},
            {"cuda_compiler", or_null(build.cuda_compiler)},
            {"argv", argv}}},
          {"host",
           {{"cpu_model", host.cpu_model},
            {"logical_cpus", host.logical_cpus},
            {"threads_used", devices.threads_used},
            {"memory_bytes", host.memory_bytes},
            {"os", host.os}}},
          {"gpu", report.at("gpu")},
          {"ceilings", report.at("ceilings")},
          {"noise", report.at("noise")},
          {"at_start", report.at("at_start")},
          {"examined", examined_json(devices)},
          {"findings", findings_json(findings(devices))}};
}

}  // namespace inferometer
