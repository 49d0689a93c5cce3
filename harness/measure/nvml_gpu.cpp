#include "harness/measure/nvml.hpp"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>

namespace inferometer {
namespace {

// The few declarations of nvml.h that are used; the header is not part of every toolkit installation.
using NvmlDevice = struct nvmlDevice_st*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlInsufficientSize = 7;
constexpr int kNvmlClockSm = 1;
constexpr int kNvmlClockMemory = 2;
constexpr int kNvmlTemperatureGpu = 0;
constexpr unsigned long long kSoftwarePowerCap = 0x4;
constexpr unsigned long long kHardwareSlowdown = 0x8;
constexpr unsigned long long kSoftwareThermal = 0x20;
constexpr unsigned long long kHardwareThermal = 0x40;
constexpr unsigned long long kHardwarePowerBrake = 0x80;

struct NvmlProcess {
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct CloseLibrary {
  void operator()(void* handle) const noexcept { dlclose(handle); }
};

}  // namespace

struct Nvml::Library {
  std::unique_ptr<void, CloseLibrary> handle{dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)};
  NvmlDevice device = nullptr;

  int (*shutdown)() = nullptr;
  int (*get_driver_version)(char*, unsigned) = nullptr;
  int (*get_max_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*get_power_limit)(NvmlDevice, unsigned*) = nullptr;
  int (*get_clock_limits)(NvmlDevice, unsigned long long*) = nullptr;
  int (*get_clock)(NvmlDevice, int, unsigned*) = nullptr;
  int (*get_temperature)(NvmlDevice, int, unsigned*) = nullptr;
  int (*get_power)(NvmlDevice, unsigned*) = nullptr;
  int (*get_persistence)(NvmlDevice, unsigned*) = nullptr;
  int (*get_processes)(NvmlDevice, unsigned*, NvmlProcess*) = nullptr;

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle.get(), name));
  }

  // The one figure that `function` writes; none where it is missing or refuses.
  template <class Function, class... Choice>
  std::optional<unsigned> figure(Function* function, Choice... choice) const {
    unsigned value = 0;
    if (function == nullptr || function(device, choice..., &value) != kNvmlSuccess) return std::nullopt;
    return value;
  }

  std::optional<int> other_processes() const {
    if (get_processes == nullptr) return std::nullopt;
    std::array<NvmlProcess, 64> processes{};
    auto count = static_cast<unsigned>(processes.size());
    const int code = get_processes(device, &count, processes.data());
    if (code == kNvmlInsufficientSize) return static_cast<int>(count);  // more than anyone need count
    if (code != kNvmlSuccess) return std::nullopt;
    const auto own = static_cast<unsigned>(getpid());
    return static_cast<int>(std::count_if(processes.begin(), processes.begin() + count,
                                          [&](const NvmlProcess& process) { return process.pid != own; }));
  }
};

Nvml::Nvml(const std::string& pci_bus_id) : library_(std::make_unique<Library>()) {
  int (*init)() = nullptr;
  int (*get_handle)(const char*, NvmlDevice*) = nullptr;
  if (library_->handle != nullptr) {
    library_->find(init, "nvmlInit_v2");
    library_->find(get_handle, "nvmlDeviceGetHandleByPciBusId_v2");
    library_->find(library_->shutdown, "nvmlShutdown");
    library_->find(library_->get_driver_version, "nvmlSystemGetDriverVersion");
    library_->find(library_->get_max_clock, "nvmlDeviceGetMaxClockInfo");
    library_->find(library_->get_power_limit, "nvmlDeviceGetEnforcedPowerLimit");
    library_->find(library_->get_clock_limits, "nvmlDeviceGetCurrentClocksEventReasons");
    if (library_->get_clock_limits == nullptr)  // its name before driver 535
      library_->find(library_->get_clock_limits, "nvmlDeviceGetCurrentClocksThrottleReasons");
    library_->find(library_->get_clock, "nvmlDeviceGetClockInfo");
    library_->find(library_->get_temperature, "nvmlDeviceGetTemperature");
    library_->find(library_->get_power, "nvmlDeviceGetPowerUsage");
    library_->find(library_->get_persistence, "nvmlDeviceGetPersistenceMode");
    library_->find(library_->get_processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  }
  if (init == nullptr || get_handle == nullptr || library_->shutdown == nullptr || init() != kNvmlSuccess) {
    library_.reset();
    return;
  }
  if (get_handle(pci_bus_id.c_str(), &library_->device) != kNvmlSuccess) {
    library_->shutdown();
    library_.reset();
  }
}

Nvml::~Nvml() {
  if (library_) library_->shutdown();
}

std::optional<std::string> Nvml::driver_version() const {
  std::array<char, 96> text{};
  if (!library_ || library_->get_driver_version == nullptr ||
      library_->get_driver_version(text.data(), text.size()) != kNvmlSuccess)
    return std::nullopt;
  return text.data();
}

std::optional<int> Nvml::max_sm_mhz() const {
  unsigned mhz = 0;
  if (!library_ || library_->get_max_clock == nullptr ||
      library_->get_max_clock(library_->device, kNvmlClockSm, &mhz) != kNvmlSuccess)
    return std::nullopt;
  return static_cast<int>(mhz);
}

std::optional<double> Nvml::power_limit_w() const {
  unsigned milliwatts = 0;
  if (!library_ || library_->get_power_limit == nullptr ||
      library_->get_power_limit(library_->device, &milliwatts) != kNvmlSuccess)
    return std::nullopt;
  return milliwatts / 1000.0;
}

std::vector<std::string> Nvml::clock_limits() const {
  unsigned long long reasons = 0;
  if (!library_ || library_->get_clock_limits == nullptr ||
      library_->get_clock_limits(library_->device, &reasons) != kNvmlSuccess)
    return {};
  std::vector<std::string> flags;
  if ((reasons & kSoftwarePowerCap) != 0) flags.emplace_back("power_limited");
  if ((reasons & (kSoftwareThermal | kHardwareThermal)) != 0) flags.emplace_back("thermally_limited");
  if ((reasons & (kHardwareSlowdown | kHardwarePowerBrake)) != 0) flags.emplace_back("slowed_by_hardware");
  return flags;
}

std::optional<GpuState> Nvml::state() const {
  if (!library_) return std::nullopt;
  const auto integer = [](std::optional<unsigned> value) {
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  GpuState state;
  if (const auto mode = library_->figure(library_->get_persistence)) state.persistence = *mode != 0;
  state.sm_mhz = integer(library_->figure(library_->get_clock, kNvmlClockSm));
  state.memory_mhz = integer(library_->figure(library_->get_clock, kNvmlClockMemory));
  state.temperature_c = integer(library_->figure(library_->get_temperature, kNvmlTemperatureGpu));
  if (const auto milliwatts = library_->figure(library_->get_power)) state.power_w = *milliwatts / 1000.0;
  state.other_processes = library_->other_processes();
  state.clock_limits = clock_limits();
  return state;
}

}  // namespace inferometer
