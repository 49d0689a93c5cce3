// A peer as a device: tensors in memory shared with its process, launches and clock in there. So the row runner judges
// a peer as it judges our kernels.
#pragma once

#include "harness/measure/device.hpp"
#include "harness/peer/peer.hpp"
#include "harness/results/environment.hpp"

namespace inferometer {

class PeerDevice : public Device {
 public:
  // `host` makes the inputs; all outlive the device.
  PeerDevice(Peer& peer, Device& host, const DeviceReport& report) : peer_(peer), host_(host), report_(report) {}

  void* allocate(std::size_t bytes) override { return peer_.allocate(bytes); }
  void release(void* memory) noexcept override { peer_.release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    host_.fill(spec, seed, tensor, destination);
  }
  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override {
    host_.set_bytes(memory, value, bytes);
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    peer_.read_back();
    host_.copy_to_host(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    host_.copy_from_host(destination, source, bytes);
  }
  void synchronize() override { peer_.require_alive(); }
  Launch launch() const override { return host_.launch(); }

  std::size_t free_bytes() const override { return host_.free_bytes(); }
  std::size_t cache_bytes() const override { return report_.gpu ? report_.gpu->l2_bytes : host_.cache_bytes(); }
  std::optional<GpuInfo> gpu() const override { return report_.gpu; }

  // The peer's sampler launches its sets by itself: `run` stays unused.
  Timing time(const Run& /*run*/, const InputSets& sets, const MeasureConfig& config,
              double /*launched_seconds*/) override {
    sets.made();
    MeasureConfig own = config;
    own.kernel_times = false;
    Timing timing = peer_.time(own);
    timing.profiler.reset();  // whatever it says of itself
    timing.profiler_absent.clear();
    if (config.kernel_times)
      timing.profiler_absent = "a peer launches in a process of its own, to which none is attached";
    return timing;
  }
  Ceilings measure_ceilings() override { return host_.measure_ceilings(); }
  Noise measure_noise() override { return host_.measure_noise(); }

 private:
  Peer& peer_;
  Device& host_;
  const DeviceReport& report_;
};

}  // namespace inferometer
