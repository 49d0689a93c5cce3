// Times of launches by a profiler beside those by events. Where there is no CUPTI, or another tool holds it, what is
// tested is that the reason is said.
#include "harness/measure/gpu_kernels.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"

using namespace inferometer;

namespace {

constexpr MeasureConfig kProfiled{.max_samples = 50, .max_seconds = 0.5, .kernel_times = true};

// False, with a warning, where none is to be had.
bool has_profiler(const Timing& timing) {
  CHECK(timing.profiler.has_value() == timing.profiler_absent.empty());
  if (!timing.profiler) WARN("no profiler: " << timing.profiler_absent);
  return timing.profiler.has_value();
}

}  // namespace

TEST_CASE("kernel times: a kernel that spins for 50 us takes that by the profiler, and longer between events",
          "[measure][profiler][gpu]") {
  const auto gpu = test::gpu();
  const Timing timing =
      gpu->time([](int, const Launch& launch) { launch_spin(50'000, nullptr, launch.stream); }, 1, kProfiled);
  if (!has_profiler(timing)) return;
  const ProfilerTiming& profiler = *timing.profiler;
  CAPTURE(profiler.tool, profiler.median_ns, profiler.between_events_ns, timing.isolated.median_ns);
  // Two waits of the kernel for a tick of the global timer, 1 us each, and its own beginning and end.
  CHECK(profiler.median_ns > 49e3);
  CHECK(profiler.median_ns < 60e3);
  CHECK(profiler.median_ns < timing.isolated.median_ns);
  CHECK(profiler.median_ns < profiler.between_events_ns);
  CHECK(profiler.samples == timing.isolated.samples);
  REQUIRE(profiler.kernels.size() == 1);  // the one that clears the cache is none of the launch's
  CHECK(profiler.kernels.front().name == "spin_kernel");
  CHECK(profiler.kernels.front().count == 1);
  CHECK(profiler.tool.starts_with("CUPTI "));
}

TEST_CASE("kernel times: all kernels of a launch count, and what lies between them", "[measure][profiler][gpu]") {
  const auto gpu = test::gpu();
  const Timing timing = gpu->time(
      [](int, const Launch& launch) {
        launch_spin(20'000, nullptr, launch.stream);
        launch_empty(launch.stream);
        launch_spin(20'000, nullptr, launch.stream);
      },
      1, kProfiled);
  if (!has_profiler(timing)) return;
  const ProfilerTiming& profiler = *timing.profiler;
  REQUIRE(profiler.kernels.size() == 2);
  CHECK(profiler.kernels[0].name == "spin_kernel");
  CHECK(profiler.kernels[0].count == 2);
  CHECK(profiler.kernels[1].name == "empty_kernel");
  CHECK(profiler.median_ns > 2 * profiler.kernels[0].mean_ns + profiler.kernels[1].mean_ns);
}

TEST_CASE("kernel times: none are taken unless asked for, and a launch of nothing has none",
          "[measure][profiler][gpu]") {
  const auto gpu = test::gpu();
  const Device::Run empty = [](int, const Launch& launch) { launch_empty(launch.stream); };
  const Timing plain = gpu->time(empty, 1, {.max_samples = 50, .max_seconds = 0.2});
  CHECK_FALSE(plain.profiler);
  CHECK(plain.profiler_absent.empty());
  const Timing nothing = gpu->time([](int, const Launch&) {}, 1, kProfiled);
  CHECK_FALSE(nothing.profiler);
  CHECK_FALSE(nothing.profiler_absent.empty());
}
