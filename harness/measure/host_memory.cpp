#include "harness/measure/host_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <system_error>
#include <utility>

#include "harness/measure/device.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
// Left to the rest of the process (reference results, the journal): without swap, the last byte costs the process.
constexpr std::size_t kReserveBytes = std::size_t{64} << 20;

std::size_t round_up(std::size_t bytes, std::size_t multiple) { return (bytes + multiple - 1) / multiple * multiple; }

std::size_t saturating_difference(std::size_t a, std::size_t b) { return a > b ? a - b : 0; }

// The number in a one-line file; nothing when the file is missing or says "max".
std::optional<std::size_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::size_t value = 0;
  if (file >> value) return value;
  return std::nullopt;
}

std::size_t meminfo_available(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::size_t kibibytes = 0;
    if (words >> key >> kibibytes && key == "MemAvailable:") return kibibytes * 1024;
  }
  return kUnlimited;
}

// Page cache is counted in a group's usage, but the kernel drops it before it refuses memory.
std::size_t inactive_file_bytes(const std::string& directory, const std::string& key) {
  std::ifstream file(directory + "/memory.stat");
  std::string name;
  std::size_t value = 0;
  while (file >> name >> value)
    if (name == key) return value;
  return 0;
}

// A limit may stand at any level of the hierarchy: the tightest of the group and all its ancestors. Inside a container
// the path that /proc names may not exist under the mount; the walk then ends at the mount itself, which is the limit.
std::size_t left_in_hierarchy(const std::string& mount, std::string group, const std::array<const char*, 3>& files) {
  std::size_t left = kUnlimited;
  while (true) {
    const std::string directory = mount + group;
    const auto limit = number_in(directory + "/" + files[0]);
    const auto used = number_in(directory + "/" + files[1]);
    if (limit && used) {
      const std::size_t kept = saturating_difference(*used, inactive_file_bytes(directory, files[2]));
      left = std::min(left, saturating_difference(*limit, kept));
    }
    if (group.empty()) return left;
    group.erase(group.rfind('/'));
  }
}

// Lines of /proc/self/cgroup: "0::/path" for version 2, "4:memory:/path" for version 1.
std::size_t cgroup_available(const std::string& root) {
  std::size_t left = kUnlimited;
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos || line.find('/', second) != second + 1) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") {
      left = std::min(
          left, left_in_hierarchy(root + "/sys/fs/cgroup", group, {"memory.max", "memory.current", "inactive_file"}));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left =
          std::min(left, left_in_hierarchy(root + "/sys/fs/cgroup/memory", group,
                                           {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}));
    }
  }
  return left;
}

}  // namespace

std::size_t available_host_bytes(const std::string& root) {
  return std::min(meminfo_available(root), cgroup_available(root));
}

HostMemory::HostMemory(std::string root) : root_(std::move(root)), available_at_start_(available_host_bytes(root_)) {}

HostMemory::~HostMemory() {
  while (!blocks_.empty()) release(blocks_.begin()->first);
}

std::size_t HostMemory::free_bytes_locked() const {
  return saturating_difference(
      std::min(available_host_bytes(root_), saturating_difference(available_at_start_, held_bytes_)), kReserveBytes);
}

std::size_t HostMemory::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return free_bytes_locked();
}

void* HostMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  const std::size_t free = free_bytes_locked();
  if (bytes > free) throw OutOfMemory("host memory", bytes, free);
  const bool huge = bytes >= kHugePageBytes;  // then whole ones
  const std::size_t mapped = round_up(std::max<std::size_t>(bytes, 1), huge ? kHugePageBytes : kPageBytes);
  void* memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw OutOfMemory("host memory (mmap; is there a limit, `ulimit -v`?)", bytes, free);
  if (huge && madvise(memory, mapped, MADV_HUGEPAGE) != 0 && errno != EINVAL) {  // EINVAL: a kernel without them
    const std::error_code error(errno, std::generic_category());
    munmap(memory, mapped);
    throw std::system_error(error, "host memory: madvise(MADV_HUGEPAGE)");
  }
  blocks_.emplace(memory, mapped);
  held_bytes_ += mapped;
  return memory;
}

void HostMemory::release(void* memory) noexcept {
  if (memory == nullptr) return;
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(memory);
  if (block == blocks_.end()) {
    std::fprintf(stderr, "host memory: release of %p, which was not allocated here\n", memory);
    return;
  }
  if (munmap(memory, block->second) != 0) std::perror("host memory: munmap");
  held_bytes_ -= block->second;
  blocks_.erase(block);
}

}  // namespace inferometer
