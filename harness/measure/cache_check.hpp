// Whether a cold measurement is cold: reads whose time must tell whether the data came from the cache or from memory.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/measure/device.hpp"

namespace inferometer {

// Times of reading `read_bytes`, at most half the last-level cache, by the sampler of the rows.
struct CacheCheck {
  std::size_t read_bytes = 0;
  double cold_ns = 0;                 // isolated, the cache cleared before each
  double warm_ns = 0;                 // isolated, what the read before left in the cache
  int input_sets = 0;                 // buffers that together exceed twice the cache
  std::optional<double> rotated_ns;   // amortized over all of them; none: too slow for two turns
  std::optional<double> repeated_ns;  // amortized over one, which stays in the cache
  // GPU: reading as much as the L2 holds, after the L2 was cleared by reading and by writing.
  std::optional<double> after_reading_ns;
  std::optional<double> after_memset_ns;
};

struct CacheCheckEffort {
  double max_seconds = 0;  // for each of the two timings
  int max_samples = 0;
  int clear_samples = 0;  // GPU: after each way to clear
};

inline constexpr CacheCheckEffort kThoroughCheck{.max_seconds = 0.8, .max_samples = 200, .clear_samples = 50};
// Within some 100 ms on a GPU. On processors with a large cache one clearing takes as long, and is all there is time
// for.
inline constexpr CacheCheckEffort kQuickCheck{.max_seconds = 0.06, .max_samples = 30, .clear_samples = 15};

// Throws OutOfMemory where what is read and cleared (at most seven times the cache, on a GPU 16 times) does not fit.
CacheCheck check_cpu_cache(Device& host, const CacheCheckEffort& effort);
CacheCheck check_gpu_cache(Device& gpu, const CacheCheckEffort& effort);

// The part of both that knows no backend: `read(buffer, launch)` reads all of a buffer of `bytes`.
using BufferRead = std::function<void(const void* buffer, std::size_t bytes, const Launch& launch)>;
CacheCheck check_cache(Device& device, const CacheCheckEffort& effort, const BufferRead& read);

}  // namespace inferometer
