#include "harness/measure/cpu_cache.hpp"

#include <omp.h>
#include <sched.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "harness/measure/cpu_slices.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kLineBytes = 64;
constexpr std::size_t kUnknownCacheBytes = std::size_t{32} << 20;  // when the kernel does not describe its caches

std::string first_word(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

// "32768K" and the like; 0 when malformed.
std::size_t parse_cache_size(const std::string& text) {
  std::size_t value = 0;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits)
    value = value * 10 + static_cast<std::size_t>(text[digits] - '0');
  if (digits == text.size()) return value;
  if (text[digits] == 'K') return value << 10;
  return text[digits] == 'M' ? value << 20 : 0;
}

struct CacheInstance {
  std::string shared_by;  // list of processors: names the instance
  std::size_t bytes = 0;
};

CacheInstance last_level_of(int cpu) {
  CacheInstance last;
  std::string last_level;
  for (int index = 0;; ++index) {
    const std::string directory =
        "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/cache/index" + std::to_string(index) + "/";
    const std::string level = first_word(directory + "level");
    if (level.empty()) return last;
    if (first_word(directory + "type") == "Instruction" || level < last_level) continue;
    last_level = level;
    last = {first_word(directory + "shared_cpu_list"), parse_cache_size(first_word(directory + "size"))};
  }
}

}  // namespace

std::size_t last_level_cache_bytes() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::size_t total = 0;
  std::set<std::string> seen;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &allowed)) continue;
      const CacheInstance cache = last_level_of(cpu);
      if (seen.insert(cache.shared_by).second) total += cache.bytes;
    }
  }
  return total > 0 ? total : kUnknownCacheBytes;
}

void read_lines(std::span<const std::byte> all, int threads) {
  std::uint64_t sum = 0;
#pragma omp parallel num_threads(threads) reduction(+ : sum)
  {
    const auto slice = thread_slice(all, omp_get_thread_num(), omp_get_num_threads());
    for (std::size_t i = 0; i < slice.size(); i += kLineBytes) sum += std::to_integer<std::uint64_t>(slice[i]);
  }
  asm volatile("" : : "r"(sum));  // used: the loop stays
}

CpuCacheClear::CpuCacheClear(HostMemory& memory, std::size_t cache_bytes, int threads)
    : memory_(memory), bytes_(4 * cache_bytes), threads_(threads) {}

CpuCacheClear::~CpuCacheClear() { memory_.release(buffer_); }

std::span<std::byte> CpuCacheClear::buffer() {
  if (buffer_ == nullptr) {
    buffer_ = static_cast<std::byte*>(memory_.allocate(bytes_));
#pragma omp parallel num_threads(threads_)
    {
      const auto slice = thread_slice(std::span(buffer_, bytes_), omp_get_thread_num(), omp_get_num_threads());
      std::memset(slice.data(), 1, slice.size());
    }
  }
  return {buffer_, bytes_};
}

void CpuCacheClear::clear() { read_lines(buffer(), threads_); }

}  // namespace inferometer
