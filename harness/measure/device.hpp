// Where rows run: the host's processors or one GPU, behind one interface, so that the row runner knows no backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "harness/measure/timing.hpp"
#include "harness/operator/tensor.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

class OutOfMemory : public std::runtime_error {
 public:
  OutOfMemory(const std::string& where, std::size_t asked_bytes, std::size_t free_bytes);
  std::size_t asked_bytes() const { return asked_bytes_; }
  std::size_t free_bytes() const { return free_bytes_; }

 private:
  std::size_t asked_bytes_;
  std::size_t free_bytes_;
};

struct GpuInfo {
  std::string name;
  int sm = 0;  // compute capability, 90 for 9.0
  int sm_count = 0;
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  std::string driver;
  std::string cuda_runtime;
  int max_sm_mhz = 0;
  double power_limit_w = 0;
  std::string uuid;
};

// Attainable rates of this device, measured. Absent: not measured on this kind of device.
struct Ceilings {
  std::optional<double> read_bytes_per_s;
  std::optional<double> copy_bytes_per_s;  // bytes read plus bytes written
  std::optional<double> f16_flops_per_s;   // of 16-bit products: the better of f16 and bf16
  std::optional<double> f32_flops_per_s;
  std::optional<double> int8_ops_per_s;
};

// How well this device's clock sees: measured once per run.
struct Noise {
  double repeat_ratio = 0;  // spread of the medians of identical measurements
  double event_resolution_ns = 0;
  double empty_launch_ns = 0;
};

// The input sets of a row. Those after the first may be made as late as when an estimator is about to rotate over them:
// where none will, their time is saved.
struct InputSets {
  int count = 1;                   // at least one
  std::function<int()> make = {};  // makes the others; how many there are then, fewer where memory is short

  int made() const { return make ? make() : count; }
};

class Device {
 public:
  virtual ~Device() = default;

  virtual void* allocate(std::size_t bytes) = 0;  // 256-byte aligned; throws OutOfMemory
  virtual void release(void* memory) noexcept = 0;
  virtual void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) = 0;
  virtual void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) = 0;
  void set_zero(void* memory, std::size_t bytes) { set_bytes(memory, 0, bytes); }
  virtual void copy_to_host(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void copy_from_host(void* destination, const void* source, std::size_t bytes) = 0;
  virtual void synchronize() = 0;  // throws what asynchronous work left behind
  virtual Launch launch() const = 0;

  virtual std::size_t free_bytes() const = 0;
  virtual std::size_t cache_bytes() const = 0;  // last-level cache: L2 of a GPU, L3 of a CPU
  virtual std::optional<GpuInfo> gpu() const = 0;

  // Both estimators. `run(set, launch)` launches once with input set `set`, 0 <= set < sets.made(); none after set 0
  // before they are made. `launched_seconds`: how long a launch just before took, its end waited for; a long one was
  // the warm-up. 0: there was none.
  using Run = std::function<void(int set, const Launch& launch)>;
  Timing time(const Run& run, int sets, const MeasureConfig& config) {
    return time(run, InputSets{.count = sets}, config, 0);
  }
  virtual Timing time(const Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds) = 0;
  virtual Ceilings measure_ceilings() = 0;
  virtual Noise measure_noise() = 0;
};

std::unique_ptr<Device> make_cpu_device(int threads);  // threads 0: as many as this process may run on

// nullptr, with the reason, when this build or this machine has no such GPU.
std::unique_ptr<Device> make_gpu_device(int ordinal, std::string& reason);

}  // namespace inferometer
