// Large blocks of host memory, and how much of it this process may still take.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>

namespace inferometer {

// Least of what the kernel can hand out without swapping and what is left under the memory limits of this process's
// control groups (versions 1 and 2). `root` prefixes /proc and /sys, for tests.
std::size_t available_host_bytes(const std::string& root = "");

// Page-aligned blocks straight from the kernel, on huge pages where it grants them, so that page-table walks do not
// stand in the timings. Thread-safe.
class HostMemory {
 public:
  explicit HostMemory(std::string root = {});  // see available_host_bytes
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  void* allocate(std::size_t bytes);  // throws OutOfMemory
  void release(void* memory) noexcept;

  // What allocate would still give. The kernel promises more memory than it has and counts a page only once it is
  // touched, so blocks in hand are subtracted from what was available at the start.
  std::size_t free_bytes() const;

 private:
  std::size_t free_bytes_locked() const;

  const std::string root_;
  mutable std::mutex mutex_;
  std::map<void*, std::size_t> blocks_;
  std::size_t held_bytes_ = 0;
  std::size_t available_at_start_;
};

}  // namespace inferometer
