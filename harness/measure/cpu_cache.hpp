// The last-level caches of this machine: how large, and how to empty them of a row's data.
#pragma once

#include <cstddef>
#include <span>

#include "harness/measure/host_memory.hpp"

namespace inferometer {

// Bytes of last-level cache that serve the processors this process may run on: a chip made of several dies has one
// L3 each, and a launch on all of them has all of those.
std::size_t last_level_cache_bytes();

// Reads every cache line of `all` on `threads` threads.
void read_lines(std::span<const std::byte> all, int threads);

// Clears the caches by reading four times their size, on all threads.
class CpuCacheClear {
 public:
  CpuCacheClear(HostMemory& memory, std::size_t cache_bytes, int threads);
  ~CpuCacheClear();
  CpuCacheClear(const CpuCacheClear&) = delete;
  CpuCacheClear& operator=(const CpuCacheClear&) = delete;

  void clear();

  // The buffer read: allocated and written by the threads that will read it, at the first use. Four caches large.
  std::span<std::byte> buffer();

 private:
  HostMemory& memory_;
  std::size_t bytes_;
  int threads_;
  std::byte* buffer_ = nullptr;
};

}  // namespace inferometer
