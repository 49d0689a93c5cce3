// inferometer doctor: what this machine is, how well the harness measures on it, and what to do about either.
#include <iostream>
#include <memory>

#include "experiments/command.hpp"
#include "harness/results/aligned.hpp"
#include "harness/results/build_info.hpp"
#include "harness/results/doctor.hpp"
#include "harness/results/doctor_events.hpp"
#include "harness/results/terminal.hpp"
#include "harness/run/examine.hpp"

namespace inferometer {
namespace {

struct Typed {
  int device = 0;
  bool json = false;
};

using Lines = std::vector<std::vector<std::string>>;

void add_rate(Lines& lines, const char* name, const std::optional<double>& value, double unit, const char* unit_name) {
  if (value) lines.push_back({name, formatted("%.3g ", *value / unit) + unit_name});
}

void add_examination(Lines& lines, const Examination& measured) {
  const auto time = [](const std::optional<double>& ns) { return ns ? shown_time(*ns) : std::string("-"); };
  lines.push_back({"repeat noise", formatted("%.2f %%", 100 * measured.noise.repeat_ratio)});
  lines.push_back({"clock resolution", shown_time(measured.noise.event_resolution_ns)});
  lines.push_back({"empty launch", shown_time(measured.noise.empty_launch_ns)});
  if (const auto& cache = measured.cache) {
    lines.push_back({"read of " + shown_bytes(static_cast<double>(cache->read_bytes)),
                     shown_time(cache->cold_ns) + " cold, " + shown_time(cache->warm_ns) + " warm, " +
                         time(cache->rotated_ns) + " rotated, " + time(cache->repeated_ns) + " repeated"});
    if (cache->after_memset_ns)
      lines.push_back({"read of the whole L2", time(cache->after_reading_ns) + " after clearing by reading, " +
                                                   time(cache->after_memset_ns) + " after a memset"});
  }
  constexpr double kGiga = 1e9;
  constexpr double kTera = 1e12;
  add_rate(lines, "read ceiling", measured.ceilings.read_bytes_per_s, kGiga, "GB/s");
  add_rate(lines, "copy ceiling", measured.ceilings.copy_bytes_per_s, kGiga, "GB/s");
  add_rate(lines, "f16 ceiling", measured.ceilings.f16_flops_per_s, kTera, "TFLOP/s");
  add_rate(lines, "f32 ceiling", measured.ceilings.f32_flops_per_s, kTera, "TFLOP/s");
  add_rate(lines, "int8 ceiling", measured.ceilings.int8_ops_per_s, kTera, "TOP/s");
}

void add_state(Lines& lines, const char* when, const std::optional<GpuState>& state) {
  if (!state) return;
  std::string text;
  const auto add = [&](const std::optional<int>& value, const char* unit) {
    if (value) text += (text.empty() ? "" : ", ") + std::to_string(*value) + unit;
  };
  add(state->sm_mhz, " MHz SM");
  add(state->memory_mhz, " MHz memory");
  add(state->temperature_c, " degrees C");
  if (state->power_w) text += (text.empty() ? "" : ", ") + formatted("%.0f W", *state->power_w);
  for (const std::string& limit : state->clock_limits) text += (text.empty() ? "" : ", ") + limit;
  lines.push_back({when, text});
}

std::string machine_text(const Diagnosis& diagnosis) {
  const BuildInfo& build = build_info();
  const HostInfo& host = diagnosis.host;
  Lines lines{{"program", build.version + " (" + build.git_commit + (build.git_dirty ? ", changed), " : "), ") +
                              build.build_type + ", " + build.compiler +
                              (build.cuda_compiler.empty() ? ", no CUDA" : ", " + build.cuda_compiler)},
              {"host", host.cpu_model + ", " + std::to_string(host.logical_cpus) + " processors, " +
                           shown_bytes(static_cast<double>(host.memory_bytes)) + ", " + host.os}};
  const HostState& state = diagnosis.host_state;
  lines.push_back({"governor", state.governor.value_or("not known")});
  if (state.load_average) lines.push_back({"load average", formatted("%.2f", *state.load_average)});
  if (state.processor_quota) lines.push_back({"processor quota", formatted("%.2f", *state.processor_quota)});
  if (const auto& gpu = diagnosis.gpu) {
    lines.push_back({"GPU", gpu->name + ", sm_" + std::to_string(gpu->sm) + ", " + std::to_string(gpu->sm_count) +
                                " multiprocessors, " + shown_bytes(static_cast<double>(gpu->memory_bytes)) + ", L2 " +
                                shown_bytes(static_cast<double>(gpu->l2_bytes))});
    lines.push_back({"driver", gpu->driver + ", CUDA runtime " + gpu->cuda_runtime});
    lines.push_back({"limits", std::to_string(gpu->max_sm_mhz) + " MHz, " + formatted("%.0f W", gpu->power_limit_w)});
  } else {
    lines.push_back({"GPU", "none: " + diagnosis.gpu_absent});
  }
  add_state(lines, "GPU at rest", diagnosis.gpu_at_rest);
  add_state(lines, "after ceilings", diagnosis.gpu_after_ceilings);
  return aligned(lines, 2);
}

std::string diagnosis_text(const Diagnosis& diagnosis, const std::vector<Finding>& findings) {
  Lines cpu;
  add_examination(cpu, diagnosis.cpu);
  std::string text = "Machine\n" + machine_text(diagnosis) + "\nThe harness on " +
                     std::to_string(diagnosis.threads_used) + " CPU threads\n" + aligned(cpu, 2);
  if (diagnosis.gpu_measured) {
    Lines gpu;
    add_examination(gpu, *diagnosis.gpu_measured);
    if (diagnosis.event_cost) gpu.push_back({"between two events", event_cost_line(*diagnosis.event_cost)});
    text += "\nThe harness on the GPU\n" + aligned(gpu, 2);
  }
  Lines lines;
  for (const Finding& finding : findings)
    lines.push_back({std::string(severity_name(finding.severity)), finding.topic, finding.sentence});
  return text + "\nFindings\n" + aligned(lines, 2);
}

int doctor(const Typed& typed) {
  const Diagnosis diagnosis = examine_machine(typed.device);
  const std::vector<Finding> found = findings(diagnosis);
  if (typed.json) {
    std::cout << diagnosis_json(diagnosis, found).dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
  } else {
    std::cout << diagnosis_text(diagnosis, found);
  }
  return exit_code(found);
}

}  // namespace

Command add_doctor_command(CLI::App& program) {
  const auto typed = std::make_shared<Typed>();
  CLI::App* app = program.add_subcommand("doctor", "What this machine is, and how well it can be measured");
  app->add_flag("--json", typed->json, "As JSON");
  app->add_option("--device", typed->device, "GPU, by its ordinal (default: 0)")->check(CLI::Range(0, 1023));
  app->footer(
      "Findings are 'good', 'advice' (figures stand, and would stand better) or 'fault' (figures do not mean what "
      "they\n"
      "say: data stays in a cache that is said to be cold, or medians of the same work differ by more than 10 %).\n"
      "Exit codes: 0 no fault, whatever the advice; 1 a fault, be it of the CPU or of the GPU; 2 wrong use.");
  return {app, [typed](const Arguments&) { return doctor(*typed); }};
}

}  // namespace inferometer
