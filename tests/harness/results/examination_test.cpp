#include "harness/results/examination.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/simulated_cache.hpp"

using namespace inferometer;
using inferometer::test::examined;
using inferometer::test::SimulatedCache;

TEST_CASE("cache verdict: a clear that empties the cache and buffers that displace each other work",
          "[results][doctor]") {
  SimulatedCache device;
  const CacheVerdicts verdicts = judge_cache(examined(device));
  CHECK(verdicts.clear == CacheVerdict::works);
  CHECK(verdicts.rotation == CacheVerdict::works);
  CHECK(verdicts.cold_rate == Approx(1));
  CHECK(verdicts.rotated_rate == Approx(1));
  CHECK(cold_flags(verdicts, true).empty());
}

TEST_CASE("cache verdict: a clear that clears nothing fails, and cold rows are flagged", "[results][doctor]") {
  SimulatedCache device;
  device.clears = false;
  const CacheVerdicts verdicts = judge_cache(examined(device));
  CHECK(verdicts.clear == CacheVerdict::fails);
  CHECK(verdicts.cold_rate == Approx(2));
  CHECK(verdicts.rotation == CacheVerdict::works);
  CHECK(cold_flags(verdicts, true) == std::vector<std::string>{"cache_not_cleared"});

  // Of a cache that is no faster than 1.1 times memory, less what the ceiling is good to.
  device.cache_bytes_per_ns = 1.09;
  CHECK(judge_cache(examined(device)).clear == CacheVerdict::unclear);
  CHECK(judge_cache(examined(device)).rotation == CacheVerdict::unclear);
}

TEST_CASE("cache verdict: a clear that clears nothing fails where short reads are no faster than memory's rate",
          "[results][doctor]") {
  SimulatedCache device;
  Examination measured = examined(device);
  measured.ceilings.read_bytes_per_s = 2.5e9;  // a rate that only longer reads reach
  CHECK(judge_cache(measured).clear == CacheVerdict::works);
  device.clears = false;
  measured.cache = examined(device).cache;
  const CacheVerdicts verdicts = judge_cache(measured);
  CHECK(verdicts.cold_rate < 1);
  CHECK(verdicts.as_warm);
  CHECK(verdicts.clear == CacheVerdict::fails);
}

TEST_CASE("cache verdict: buffers that find each other in a cache larger than it says fail", "[results][doctor]") {
  SimulatedCache device;
  device.holds_bytes *= 8;
  const CacheVerdicts verdicts = judge_cache(examined(device));
  CHECK(verdicts.clear == CacheVerdict::works);
  CHECK(verdicts.rotation == CacheVerdict::fails);
  CHECK(cold_flags(verdicts, true) == std::vector<std::string>{"rotation_in_cache"});
  CHECK(cold_flags(verdicts, false).empty());
}

TEST_CASE("cache verdict: on a noisy device a fault is not charged, and without a check there is none",
          "[results][doctor]") {
  SimulatedCache device;
  device.clears = false;
  Examination measured = examined(device);
  measured.noise.repeat_ratio = 0.05;
  CHECK(judge_cache(measured).clear == CacheVerdict::disturbed);
  CHECK(cold_flags(judge_cache(measured), true).empty());
  measured.noise.repeat_ratio = 0;
  measured.ceilings.copy_bytes_per_s = 2e9;  // reading was disturbed while its ceiling was measured
  CHECK(judge_cache(measured).cold_rate == Approx(1));
  measured.cache.reset();
  CHECK(judge_cache(measured).clear == CacheVerdict::unchecked);
  CHECK(judge_cache(measured).rotation == CacheVerdict::unchecked);
}

TEST_CASE("examination: JSON has the verdicts in words, and the check comes back from it", "[results][doctor][json]") {
  SimulatedCache device;
  device.clears = false;
  const Examination measured = examined(device);
  const Json json = examination_json(measured);
  CHECK(json.at("cache_clear") == "fails");
  CHECK(json.at("cache_rotation") == "works");
  CHECK(json.at("cache").at("input_sets") == 5);
  CHECK(cache_check_json(cache_check_from_json(json.at("cache"))) == json.at("cache"));
  CHECK(examination_json({}).at("cache_clear") == "unchecked");
  CHECK(examination_json({}).at("cache").is_null());
}
