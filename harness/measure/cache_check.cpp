#include "harness/measure/cache_check.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "harness/measure/cpu_cache.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kMostReadBytes = std::size_t{32} << 20;  // of a larger cache a part tells as much, and sooner
constexpr std::size_t kAlignment = 4096;

std::shared_ptr<void> buffer_on(Device& device, std::size_t bytes) {
  std::shared_ptr<void> buffer(device.allocate(bytes), [&device](void* memory) { device.release(memory); });
  device.set_bytes(buffer.get(), 1, bytes);
  return buffer;
}

}  // namespace

CacheCheck check_cache(Device& device, const CacheCheckEffort& effort, const BufferRead& read) {
  CacheCheck check;
  check.read_bytes = std::min(device.cache_bytes() / 2, kMostReadBytes) / kAlignment * kAlignment;
  check.input_sets = static_cast<int>(2 * device.cache_bytes() / check.read_bytes) + 1;
  const auto sets = static_cast<std::size_t>(check.input_sets);
  std::vector<std::shared_ptr<void>> buffers;
  buffers.reserve(sets);
  const auto make = [&](std::size_t count) {
    while (buffers.size() < count) buffers.push_back(buffer_on(device, check.read_bytes));
    device.synchronize();
    return static_cast<int>(count);
  };
  make(1);  // the others where there is time to rotate over them
  const Device::Run run = [&](int set, const Launch& launch) {
    read(buffers[static_cast<std::size_t>(set)].get(), check.read_bytes, launch);
  };
  const auto amortized_ns = [](const Timing& timing) {
    return timing.amortized ? std::optional(timing.amortized->mean_ns) : std::nullopt;
  };
  MeasureConfig config{
      .min_samples = 30, .max_samples = effort.max_samples, .max_seconds = effort.max_seconds, .relative_ci = 0.01};
  const Timing cold = device.time(run, {.count = check.input_sets, .make = [&] { return make(sets); }}, config, 0);
  config.cache = CacheMode::warm;
  const Timing warm = device.time(run, 1, config);
  check.cold_ns = cold.isolated.median_ns;
  check.warm_ns = warm.isolated.median_ns;
  check.rotated_ns = amortized_ns(cold);
  check.repeated_ns = amortized_ns(warm);
  return check;
}

CacheCheck check_cpu_cache(Device& host, const CacheCheckEffort& effort) {
  return check_cache(host, effort, [](const void* buffer, std::size_t bytes, const Launch& launch) {
    read_lines({static_cast<const std::byte*>(buffer), bytes}, launch.threads);
  });
}

#ifndef INFEROMETER_WITH_CUDA
CacheCheck check_gpu_cache(Device& /*gpu*/, const CacheCheckEffort& /*effort*/) {
  throw std::logic_error("check_gpu_cache: this build has no CUDA, and so no GPU to check");
}
#endif

}  // namespace inferometer
