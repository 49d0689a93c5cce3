#include "harness/measure/cache_check.hpp"

#include <algorithm>
#include <map>

#include "tests/support/catch.hpp"

using namespace inferometer;

TEST_CASE("cache check: reads distinct buffers that together exceed twice the cache, each whole", "[measure][doctor]") {
  const auto host = make_cpu_device(1);
  std::map<const void*, std::size_t> seen;
  const CacheCheck check =
      check_cache(*host, kThoroughCheck, [&](const void* buffer, std::size_t bytes, const Launch& /*launch*/) {
        seen[buffer] = bytes;
        volatile int work = 0;
        for (int i = 0; i < 20'000; ++i) work = work + 1;
      });
  const std::size_t half = host->cache_bytes() / 2;
  CHECK(check.read_bytes <= half);
  CHECK(check.read_bytes > std::min(half, std::size_t{32} << 20) - 4096);
  const auto sets = static_cast<std::size_t>(check.input_sets);
  CHECK(sets * check.read_bytes > 2 * host->cache_bytes());
  CHECK((sets - 1) * check.read_bytes <= 2 * host->cache_bytes());
  CHECK(seen.size() == sets);
  for (const auto& [buffer, bytes] : seen) CHECK(bytes == check.read_bytes);
  CHECK(check.cold_ns > 0);
  CHECK(check.warm_ns > 0);
  CHECK(check.rotated_ns.value_or(0) > 0);
  CHECK(check.repeated_ns.value_or(0) > 0);
  CHECK_FALSE(check.after_memset_ns);  // a GPU's
}
