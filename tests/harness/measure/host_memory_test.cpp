#include "harness/measure/host_memory.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/cpu_ceilings.hpp"
#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

namespace fs = std::filesystem;

// A /proc and /sys of the test's own.
class FakeRoot {
 public:
  FakeRoot() : path_(fs::temp_directory_path() / ("inferometer_host_memory_" + std::to_string(getpid()))) {
    write("proc/meminfo", "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   4000 kB\n");
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  void write_available(std::size_t kibibytes) const {
    write("proc/meminfo", "MemAvailable: " + std::to_string(kibibytes) + " kB\n");
  }
  void write(const std::string& file, const std::string& text) const {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << text;
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

constexpr std::size_t kMeminfoAvailable = std::size_t{4000} * 1024;
constexpr std::size_t kPlentyKibibytes = 400'000;

}  // namespace

TEST_CASE("host memory: without control groups the kernel's available memory counts", "[measure][host_memory]") {
  const FakeRoot root;
  CHECK(available_host_bytes(root.path()) == kMeminfoAvailable);
}

TEST_CASE("host memory: the tightest version 2 group on the path counts, page cache not held against it",
          "[measure][host_memory]") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/outer/inner\n");
  root.write("sys/fs/cgroup/outer/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/outer/memory.current", "700000\n");
  root.write("sys/fs/cgroup/outer/memory.stat", "anon 500000\ninactive_file 200000\n");
  root.write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  root.write("sys/fs/cgroup/outer/inner/memory.current", "600000\n");
  CHECK(available_host_bytes(root.path()) == 500000);
}

TEST_CASE("host memory: inside a container the limit stands at the mount itself", "[measure][host_memory]") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "0::/a/path/of/the/host\n");
  root.write("sys/fs/cgroup/memory.max", "300000\n");
  root.write("sys/fs/cgroup/memory.current", "400000\n");
  CHECK(available_host_bytes(root.path()) == 0);
}

TEST_CASE("host memory: a version 1 group's limit counts", "[measure][host_memory]") {
  const FakeRoot root;
  root.write("proc/self/cgroup", "5:cpu,cpuacct:/job\n4:memory:/job\n");
  root.write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "800000\n");
  root.write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "100000\n");
  // The root group's limit, "none", is a number near 2^63.
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
  CHECK(available_host_bytes(root.path()) == 700000);
}

TEST_CASE("host memory: blocks are aligned, writable to the last byte, and given back", "[measure][host_memory]") {
  const FakeRoot root;  // of the real one other programs take and give some meanwhile
  root.write_available(kPlentyKibibytes);
  HostMemory memory(root.path());
  const std::size_t before = memory.free_bytes();
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{4097}, (std::size_t{2} << 20) + 1}) {
    CAPTURE(bytes);
    auto* const block = static_cast<unsigned char*>(memory.allocate(bytes));
    REQUIRE(block != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(block) % 256 == 0);
    std::memset(block, 0x5a, bytes);
    CHECK((bytes == 0 || block[bytes - 1] == 0x5a));
    CHECK(memory.free_bytes() < before);
    memory.release(block);
    CHECK(memory.free_bytes() == before);
  }
}

TEST_CASE("host memory: memory that is promised but not yet touched is not promised twice", "[measure][host_memory]") {
  const FakeRoot root;
  root.write_available(kPlentyKibibytes);
  HostMemory memory(root.path());
  const std::size_t half = memory.free_bytes() / 2;
  void* const first = memory.allocate(half);
  CHECK(memory.free_bytes() <= half);
  try {
    memory.release(memory.allocate(2 * half));
    FAIL("three halves were promised");
  } catch (const OutOfMemory& error) {
    CHECK(error.asked_bytes() == 2 * half);
    CHECK(error.free_bytes() < 2 * half);
  }
  memory.release(first);
}

TEST_CASE("host memory: what other programs take meanwhile is not given", "[measure][host_memory]") {
  const FakeRoot root;
  root.write_available(kPlentyKibibytes);
  HostMemory memory(root.path());
  const std::size_t before = memory.free_bytes();
  root.write_available(kPlentyKibibytes / 2);
  CHECK(memory.free_bytes() == before - kPlentyKibibytes / 2 * 1024);
  CHECK_THROWS_AS(memory.allocate(before), OutOfMemory);
}

TEST_CASE("host memory: without room to clear the caches arithmetic alone has a ceiling", "[measure][host_memory]") {
  const FakeRoot root;
  root.write_available(kPlentyKibibytes);
  HostMemory memory(root.path());
  CpuCacheClear cache(memory, std::size_t{kPlentyKibibytes} << 10, 1);
  const Ceilings ceilings = measure_cpu_ceilings(cache, 1);
  CHECK(ceilings.f32_flops_per_s.value_or(0) > 0);
  CHECK_FALSE(ceilings.read_bytes_per_s);
  CHECK_FALSE(ceilings.copy_bytes_per_s);
  CHECK_THROWS_AS(cache.clear(), OutOfMemory);  // so does a row that is to be cold
}
