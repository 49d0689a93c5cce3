// A real device that clears nothing before a cold sample.
#pragma once

#include "harness/measure/device.hpp"

namespace inferometer::test {

class UnclearedDevice : public Device {
 public:
  explicit UnclearedDevice(Device& device) : device_(device) {}

  Timing time(const Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds) override {
    Timing timing = device_.time(run, sets, config, launched_seconds);
    MeasureConfig warm = config;
    warm.cache = CacheMode::warm;
    timing.isolated = device_.time(run, InputSets{}, warm, launched_seconds).isolated;
    return timing;
  }
  Ceilings measure_ceilings() override { return device_.measure_ceilings(); }
  Noise measure_noise() override { return device_.measure_noise(); }

  void* allocate(std::size_t bytes) override { return device_.allocate(bytes); }
  void release(void* memory) noexcept override { device_.release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    device_.fill(spec, seed, tensor, destination);
  }
  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override {
    device_.set_bytes(memory, value, bytes);
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    device_.copy_to_host(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    device_.copy_from_host(destination, source, bytes);
  }
  void synchronize() override { device_.synchronize(); }
  Launch launch() const override { return device_.launch(); }
  std::size_t free_bytes() const override { return device_.free_bytes(); }
  std::size_t cache_bytes() const override { return device_.cache_bytes(); }
  std::optional<GpuInfo> gpu() const override { return device_.gpu(); }

 private:
  Device& device_;
};

}  // namespace inferometer::test
