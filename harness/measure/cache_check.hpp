// Whether a cold measurement is cold: reads whose time must tell whether the data came from the cache or from memory.
#pragma once

#include <cstddef>
#include <optional>

#include "harness/measure/device.hpp"

namespace inferometer {

// Times of reading `read_bytes`, half the last-level cache, by the sampler that times the rows.
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

// A second or two. Throws OutOfMemory where seven times the cache (on a GPU 16 times) do not fit.
CacheCheck check_cpu_cache(Device& host);
CacheCheck check_gpu_cache(Device& gpu);

// The part of both that knows no backend: `read(buffer, launch)` reads all of a buffer of `bytes`.
using BufferRead = std::function<void(const void* buffer, std::size_t bytes, const Launch& launch)>;
CacheCheck check_cache(Device& device, const BufferRead& read);

}  // namespace inferometer
