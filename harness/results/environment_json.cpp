// The environment's half of record_json.hpp.
#include "harness/results/build_info.hpp"
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

MachineState state_from(const Json& json) {
  const auto whole = [](const Json& of, const char* name) {
    return of.at(name).is_null() ? std::nullopt : std::optional(whole_from<int>(of.at(name)));
  };
  MachineState state;
  state.host = {.governor = optional_from<std::string>(json, "governor"),
                .load_average = optional_real_from(json.at("load_average")),
                .processor_quota = optional_real_from(json.at("processor_quota"))};
  const Json& gpu = json.at("gpu");
  if (gpu.is_null()) return state;
  state.gpu = GpuState{.persistence = optional_from<bool>(gpu, "persistence"),
                       .sm_mhz = whole(gpu, "sm_mhz"),
                       .memory_mhz = whole(gpu, "memory_mhz"),
                       .temperature_c = whole(gpu, "temperature_c"),
                       .power_w = optional_real_from(gpu.at("power_w")),
                       .other_processes = whole(gpu, "other_processes"),
                       .clock_limits = gpu.at("clock_limits").get<std::vector<std::string>>()};
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
  Json json = {{"gpu", gpu_json(report.gpu)},
               {"gpu_absent", or_null(report.gpu_absent)},
               {"ceilings", ceilings_json(report.gpu_ceilings, report.cpu_ceilings)},
               {"noise", noise_json(report.noise)},
               {"threads_used", report.threads_used},
               {"at_start", state_json(report.at_start)}};
  null_non_finite(json);
  return json;
}

DeviceReport device_report_from_json(const Json& json) {
  const Json& ceilings = json.at("ceilings");
  const auto rate = [&](const char* name) { return optional_real_from(ceilings.at(name)); };
  const Json& noise = json.at("noise");
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
  report.noise = {.repeat_ratio = real_from(noise.at("repeat_ratio")),
                  .event_resolution_ns = real_from(noise.at("event_resolution_ns")),
                  .empty_launch_ns = real_from(noise.at("empty_kernel_ns"))};
  report.threads_used = whole_from<int>(json.at("threads_used"));
  if (json.contains("at_start")) report.at_start = state_from(json.at("at_start"));  // older versions wrote none
  return report;
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
          {"at_start", report.at("at_start")}};
}

}  // namespace inferometer
