#include "harness/measure/cache_check.hpp"

#include <memory>
#include <stdexcept>
#include <vector>

#include "harness/measure/cpu_cache.hpp"

namespace inferometer {
namespace {

constexpr int kSets = 5;  // of half the cache each: more than twice the cache
constexpr std::size_t kAlignment = 4096;
constexpr MeasureConfig kConfig{.min_samples = 30, .max_samples = 200, .max_seconds = 0.8, .relative_ci = 0.01};

std::shared_ptr<void> buffer_on(Device& device, std::size_t bytes) {
  std::shared_ptr<void> buffer(device.allocate(bytes), [&device](void* memory) { device.release(memory); });
  device.set_bytes(buffer.get(), 1, bytes);
  return buffer;
}

}  // namespace

CacheCheck check_cache(Device& device, const BufferRead& read) {
  CacheCheck check;
  check.read_bytes = device.cache_bytes() / 2 / kAlignment * kAlignment;
  check.input_sets = kSets;
  std::vector<std::shared_ptr<void>> buffers;
  buffers.reserve(kSets);
  for (int set = 0; set < kSets; ++set) buffers.push_back(buffer_on(device, check.read_bytes));
  device.synchronize();
  const Device::Run run = [&](int set, const Launch& launch) {
    read(buffers[static_cast<std::size_t>(set)].get(), check.read_bytes, launch);
  };
  const auto amortized_ns = [](const Timing& timing) {
    return timing.amortized ? std::optional(timing.amortized->mean_ns) : std::nullopt;
  };
  MeasureConfig config = kConfig;
  const Timing cold = device.time(run, kSets, config);
  config.cache = CacheMode::warm;
  const Timing warm = device.time(run, 1, config);
  check.cold_ns = cold.isolated.median_ns;
  check.warm_ns = warm.isolated.median_ns;
  check.rotated_ns = amortized_ns(cold);
  check.repeated_ns = amortized_ns(warm);
  return check;
}

CacheCheck check_cpu_cache(Device& host) {
  return check_cache(host, [](const void* buffer, std::size_t bytes, const Launch& launch) {
    read_lines({static_cast<const std::byte*>(buffer), bytes}, launch.threads);
  });
}

#ifndef INFEROMETER_WITH_CUDA
CacheCheck check_gpu_cache(Device& /*gpu*/) {
  throw std::logic_error("check_gpu_cache: this build has no CUDA, and so no GPU to check");
}
#endif

}  // namespace inferometer
