#include "harness/measure/nvml.hpp"

#include <dlfcn.h>

#include <array>

namespace inferometer {
namespace {

// The few declarations of nvml.h that are used; the header is not part of every toolkit installation.
using NvmlDevice = struct nvmlDevice_st*;
constexpr int kNvmlSuccess = 0;
constexpr int kNvmlClockSm = 1;
constexpr unsigned long long kSoftwarePowerCap = 0x4;
constexpr unsigned long long kHardwareSlowdown = 0x8;
constexpr unsigned long long kSoftwareThermal = 0x20;
constexpr unsigned long long kHardwareThermal = 0x40;
constexpr unsigned long long kHardwarePowerBrake = 0x80;

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

  template <class Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(dlsym(handle.get(), name));
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

}  // namespace inferometer
