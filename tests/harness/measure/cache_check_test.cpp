#include "harness/measure/cache_check.hpp"

#include <map>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("cache check: reads five distinct buffers of half the cache, whole", "[measure][doctor]") {
  const auto host = make_cpu_device(1);
  std::map<const void*, std::size_t> seen;
  const CacheCheck check = check_cache(*host, [&](const void* buffer, std::size_t bytes, const Launch& /*launch*/) {
    seen[buffer] = bytes;
    volatile int work = 0;
    for (int i = 0; i < 20'000; ++i) work = work + 1;
  });
  CHECK(check.input_sets == 5);
  CHECK(check.read_bytes <= host->cache_bytes() / 2);
  CHECK(check.read_bytes > host->cache_bytes() / 2 - 4096);
  CHECK(seen.size() == 5);
  for (const auto& [buffer, bytes] : seen) CHECK(bytes == check.read_bytes);
  CHECK(check.cold_ns > 0);
  CHECK(check.warm_ns > 0);
  CHECK(check.rotated_ns.value_or(0) > 0);
  CHECK(check.repeated_ns.value_or(0) > 0);
  CHECK_FALSE(check.after_memset_ns);  // a GPU's
}
