#include "harness/measure/host_state.hpp"

#include <fstream>

namespace inferometer {
namespace {

template <class T>
std::optional<T> first_in(const std::string& path) {
  std::ifstream file(path);
  T value{};
  return file >> value ? std::optional(value) : std::nullopt;
}

// "200000 100000" is two processors: microseconds of work in a period, and the period. "max 100000" is no limit.
std::optional<double> quota_in(const std::string& path) {
  std::ifstream file(path);
  double work = 0;
  double period = 0;
  return file >> work >> period && period > 0 ? std::optional(work / period) : std::nullopt;
}

}  // namespace

HostState read_host_state(const std::string& root) {
  return {.governor = first_in<std::string>(root + "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
          .load_average = first_in<double>(root + "/proc/loadavg"),
          .processor_quota = quota_in(root + "/sys/fs/cgroup/cpu.max")};
}

}  // namespace inferometer
