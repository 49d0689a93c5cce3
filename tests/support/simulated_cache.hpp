// A device of simulated time: reads take what their buffers' place, cache or memory, makes them take.
#pragma once

#include <algorithm>
#include <list>

#include "harness/measure/device.hpp"
#include "harness/results/examination.hpp"

namespace inferometer::test {

class SimulatedCache : public Device {
 public:
  static constexpr double kMemoryBytesPerNs = 1;
  static constexpr double kCacheBytesPerNs = 2;
  static constexpr double kLaunchNs = 2000;

  bool clears = true;                              // before a cold sample
  std::size_t holds_bytes = std::size_t{1} << 20;  // what it holds, whatever cache_bytes() says
  double cache_bytes_per_ns = kCacheBytesPerNs;

  // As a launch of a kernel that reads all of a buffer.
  void read(const void* buffer, std::size_t bytes) {
    const auto known = std::find(held_.begin(), held_.end(), buffer);
    clock_ns_ += static_cast<double>(bytes) / (known == held_.end() ? kMemoryBytesPerNs : cache_bytes_per_ns);
    if (known != held_.end()) held_.erase(known);
    held_.push_back(buffer);
    while (held_.size() * bytes > holds_bytes) held_.pop_front();
  }

  Timing time(const Run& run, const InputSets& sets, const MeasureConfig& config, double /*seconds*/) override {
    Timing timing;
    run(0, launch());
    if (config.cache == CacheMode::cold && clears) held_.clear();
    timing.isolated.median_ns = kLaunchNs + took_ns([&] { run(0, launch()); });
    const int count = config.cache == CacheMode::cold ? sets.made() : 1;
    const auto turn = [&] {
      for (int set = 0; set < count; ++set) run(set, launch());
    };
    turn();
    timing.amortized = AmortizedTiming{.launches = count, .mean_ns = took_ns(turn) / count, .input_sets = count};
    return timing;
  }
  Ceilings measure_ceilings() override {
    Ceilings ceilings;
    ceilings.read_bytes_per_s = 1e9 * kMemoryBytesPerNs;
    return ceilings;
  }
  Noise measure_noise() override { return {.empty_launch_ns = kLaunchNs}; }

  void* allocate(std::size_t bytes) override { return host_->allocate(bytes); }
  void release(void* memory) noexcept override { host_->release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    host_->fill(spec, seed, tensor, destination);
  }
  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override {
    host_->set_bytes(memory, value, bytes);
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    host_->copy_to_host(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    host_->copy_from_host(destination, source, bytes);
  }
  void synchronize() override {}
  Launch launch() const override { return host_->launch(); }
  std::size_t free_bytes() const override { return host_->free_bytes(); }
  std::size_t cache_bytes() const override { return std::size_t{1} << 20; }
  std::optional<GpuInfo> gpu() const override { return std::nullopt; }

 private:
  template <class Work>
  double took_ns(const Work& work) {
    const double before = clock_ns_;
    work();
    return clock_ns_ - before;
  }

  std::unique_ptr<Device> host_ = make_cpu_device(1);
  double clock_ns_ = 0;
  std::list<const void*> held_;  // the latest last
};

inline Examination examined(SimulatedCache& device) {
  const CacheCheck check =
      check_cache(device, kQuickCheck,
                  [&](const void* buffer, std::size_t bytes, const Launch& /*launch*/) { device.read(buffer, bytes); });
  return {.noise = device.measure_noise(), .ceilings = device.measure_ceilings(), .cache = check, .cache_absent = {}};
}

}  // namespace inferometer::test
