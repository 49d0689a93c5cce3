#include "harness/results/environment.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <utility>

namespace inferometer {
namespace {

// The value of the first line `key<separator>value`, without quotes and outer blanks; empty when there is none.
std::string value_in_file(const char* path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto at = line.find(separator);
    if (at == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != at) continue;  // a longer key
    std::string value = line.substr(at + 1);
    std::erase(value, '"');
    const auto first = value.find_first_not_of(" \t");
    return first == std::string::npos ? std::string() : value.substr(first, value.find_last_not_of(" \t") + 1 - first);
  }
  return {};
}

}  // namespace

std::vector<ExaminedDevice> examined_devices(const DeviceReport& report) {
  std::vector<ExaminedDevice> devices;
  const auto add = [&](std::string device, bool is_gpu, const Noise& noise, const Ceilings& ceilings,
                       const CheckedCache& cache) {
    devices.push_back(
        {.device = std::move(device),
         .is_gpu = is_gpu,
         .measured = {.noise = noise, .ceilings = ceilings, .cache = cache.check, .cache_absent = cache.absent}});
  };
  if (report.cpu_noise) add("cpu", false, *report.cpu_noise, report.cpu_ceilings, report.cpu_cache);
  if (report.gpu) add(report.gpu->uuid, true, report.noise, report.gpu_ceilings, report.gpu_cache);
  return devices;
}

HostInfo read_host_info() {
  HostInfo host;
  host.cpu_model = value_in_file("/proc/cpuinfo", "model name", ':');                            // x86
  if (host.cpu_model.empty()) host.cpu_model = value_in_file("/proc/cpuinfo", "CPU part", ':');  // Arm gives a number
  host.logical_cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  host.memory_bytes =
      static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  utsname kernel{};
  host.os = value_in_file("/etc/os-release", "PRETTY_NAME", '=');
  if (uname(&kernel) == 0) host.os += std::string(host.os.empty() ? "" : ", ") + kernel.sysname + " " + kernel.release;
  return host;
}

std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[sizeof "2026-11-29T14:00:00Z"];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace inferometer
