// The GPU's estimators, against kernels whose cost is known.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/measure/matmul_ceiling.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

struct Release {
  Device* device;
  void operator()(void* memory) const { device->release(memory); }
};

// A GPU and rotating buffers of random bytes.
struct Bench {
  explicit Bench(std::size_t bytes_, int sets = 1) : bytes(bytes_) {
    std::string reason;
    device = make_gpu_device(0, reason);
    INFO(reason);
    REQUIRE(device != nullptr);
    for (int set = 0; set < sets; ++set) {
      buffers.emplace_back(device->allocate(bytes), Release{device.get()});
      launch_fill_random_bytes(buffers.back().get(), bytes, static_cast<std::uint64_t>(set), device->launch().stream);
    }
    sink = {device->allocate(4), Release{device.get()}};
  }

  Device::Run read() const {
    return [this](int set, const Launch& launch) {
      launch_read(buffers[static_cast<std::size_t>(set)].get(), bytes, static_cast<std::uint32_t*>(sink.get()), nullptr,
                  launch.stream);
    };
  }

  std::size_t bytes;
  std::unique_ptr<Device> device;
  std::vector<std::unique_ptr<void, Release>> buffers;
  std::unique_ptr<void, Release> sink{nullptr, Release{nullptr}};
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

}  // namespace

TEST_CASE("gpu timing: a large copy takes its bytes over the copy ceiling", "[measure][gpu]") {
  const Bench bench(512 * kMiB, 2);
  const Ceilings ceilings = bench.device->measure_ceilings();
  REQUIRE(ceilings.copy_bytes_per_s);
  const Timing timing = bench.device->time(
      [&](int, const Launch& launch) {
        INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(bench.buffers[1].get(), bench.buffers[0].get(), bench.bytes,
                                               cudaMemcpyDeviceToDevice, launch.stream));
      },
      1, {.max_seconds = 0.5});
  const double floor_ns = 2e9 * static_cast<double>(bench.bytes) / *ceilings.copy_bytes_per_s;
  CAPTURE(timing.headline_ns, floor_ns);
  CHECK_FALSE(timing.suspect);
  CHECK(timing.headline == "isolated");
  // The ceiling is the fastest of eight passes of the same copy, twice as large: 5 % for the passes' spread, 15 % above
  // for a smaller copy's start and end.
  CHECK(timing.headline_ns > 0.95 * floor_ns);
  CHECK(timing.headline_ns < 1.15 * floor_ns);
}

TEST_CASE("gpu timing: a cold read of 8 MiB takes longer than a warm one", "[measure][gpu]") {
  const Bench bench(8 * kMiB);
  const Timing cold = bench.device->time(bench.read(), 1, {.max_seconds = 0.5});
  const Timing warm = bench.device->time(bench.read(), 1, {.cache = CacheMode::warm, .max_seconds = 0.5});
  CAPTURE(cold.isolated.median_ns, warm.isolated.median_ns);
  CHECK(cold.isolated.cache == CacheMode::cold);
  CHECK(warm.isolated.cache == CacheMode::warm);
  CHECK(cold.isolated.median_ns > 1.1 * warm.isolated.median_ns);
  CHECK(cold.isolated.samples >= 30);
  REQUIRE(cold.isolated.sm_mhz_median);
  REQUIRE(warm.isolated.sm_mhz_median);
  // Both clocks of a sample stop at ticks of the global timer: a few per cent of error at most.
  CHECK(*cold.isolated.sm_mhz_median > 200);
  CHECK(*cold.isolated.sm_mhz_median < 1.05 * bench.device->gpu()->max_sm_mhz);
  CHECK(*warm.isolated.sm_mhz_median < 1.05 * bench.device->gpu()->max_sm_mhz);
}

TEST_CASE("gpu timing: rotating sets keep amortized launches out of the cache", "[measure][gpu]") {
  const auto l2 = Bench(kMiB).device->cache_bytes();
  constexpr std::size_t kBytes = 8 * kMiB;
  const int sets = static_cast<int>(2 * l2 / kBytes + 1);
  const Bench bench(kBytes, sets);
  const Timing rotated = bench.device->time(bench.read(), sets, {.max_seconds = 0.5});
  const Timing one_set = bench.device->time(bench.read(), 1, {.max_seconds = 0.5});
  REQUIRE(rotated.amortized);
  REQUIRE(one_set.amortized);
  CHECK(rotated.amortized->input_sets == sets);
  CHECK(rotated.amortized->launches % sets == 0);
  CAPTURE(rotated.amortized->mean_ns, one_set.amortized->mean_ns);
  CHECK(rotated.amortized->mean_ns > 1.1 * one_set.amortized->mean_ns);
  CHECK(rotated.headline == "amortized");
}

TEST_CASE("gpu timing: a launch that puts nothing on its stream ends in time and is suspect", "[measure][gpu]") {
  const Bench bench(kMiB);
  const Timing timing = bench.device->time([](int, const Launch&) {}, 1, {.max_seconds = 0.2});
  CHECK(timing.suspect);
  CHECK(timing.suspect_reason == "the launch put no work on its stream");
  CHECK_FALSE(timing.amortized);
}

TEST_CASE("gpu timing: work on another stream than the row's is suspect", "[measure][gpu]") {
  const Bench bench(kMiB);
  cudaStream_t other = nullptr;
  INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  const Timing timing =
      bench.device->time([&](int, const Launch&) { launch_empty(other); }, 1, {.max_samples = 50, .max_seconds = 0.2});
  INFEROMETER_CUDA_CHECK(cudaStreamDestroy(other));
  CHECK(timing.suspect);
}

TEST_CASE("gpu timing: a launch that cannot be captured is amortized as a stream batch, and says so",
          "[measure][gpu]") {
  const Bench bench(kMiB);
  const auto run = [&](int set, const Launch& launch) {
    bench.read()(set, launch);
    void* scratch = nullptr;  // cudaMalloc is not allowed under capture
    INFEROMETER_CUDA_CHECK(cudaMalloc(&scratch, 256));
    INFEROMETER_CUDA_CHECK(cudaFree(scratch));
  };
  const Timing timing = bench.device->time(run, 1, {.max_samples = 50, .max_seconds = 0.5});
  REQUIRE(timing.amortized);
  const auto& flags = timing.isolated.flags;
  CHECK(std::find(flags.begin(), flags.end(), "amortized_without_graph") != flags.end());
  CHECK_FALSE(timing.suspect);
  bench.device->synchronize();
}

TEST_CASE("gpu timing: a launch that throws leaves the device usable", "[measure][gpu]") {
  const Bench bench(kMiB);
  int launches = 0;
  const auto run = [&](int, const Launch&) {
    if (++launches > 3) throw std::runtime_error("no such tile");
  };
  CHECK_THROWS_WITH(bench.device->time(run, 1, {}), "no such tile");
  const Timing timing = bench.device->time(bench.read(), 1, {.max_samples = 50, .max_seconds = 0.2});
  CHECK_FALSE(timing.suspect);
}

TEST_CASE("gpu timing: a spin kernel takes the time it was told, by both estimators", "[measure][gpu]") {
  const Bench bench(kMiB);
  const auto run = [](int, const Launch& launch) { launch_spin(200'000, nullptr, launch.stream); };
  // Above 200 us: a launch's own 3 us, and two waits of the kernel for a tick of the global timer, 1 us each. Who else
  // is on the GPU can make a measurement longer, never shorter: of some in half a minute, one shall be as short.
  double isolated_ns = 1e9;
  double amortized_ns = 1e9;
  for (int i = 0; i < 40 && (isolated_ns >= 210e3 || amortized_ns >= 210e3); ++i) {
    const Timing timing = bench.device->time(run, 1, {.max_seconds = 0.5});
    REQUIRE(timing.amortized);
    CHECK(timing.isolated.median_ns > 199e3);
    CHECK(timing.amortized->mean_ns > 199e3);
    isolated_ns = std::min(isolated_ns, timing.isolated.median_ns);
    amortized_ns = std::min(amortized_ns, timing.amortized->mean_ns);
  }
  CHECK(isolated_ns < 210e3);
  CHECK(amortized_ns < 210e3);
}

TEST_CASE("gpu timing: it rests before each estimator, and not in the seconds of measuring", "[measure][gpu]") {
  constexpr double kRest = 0.3;
  const Bench bench(kMiB);
  std::vector<double> pauses;  // between launches by the host, as long as a rest; replays of a graph are not among them
  auto last = Clock::now();
  const auto run = [&](int set, const Launch& launch) {
    if (const double pause = seconds_since(last); pause >= kRest) pauses.push_back(pause);
    bench.read()(set, launch);
    last = Clock::now();
  };
  bench.device->synchronize();
  last = Clock::now();
  const auto start = last;
  const Timing timing = bench.device->time(run, 1, {.max_samples = 50, .max_seconds = 0.2, .rest_seconds = kRest});
  CHECK(seconds_since(start) >= 2 * kRest);
  CHECK(pauses.size() == 1);
  CHECK(timing.isolated.samples > 1);  // a rest that counted would have used up the seconds
  CHECK(timing.amortized);
  CHECK(timing.isolated.rest_seconds == kRest);
}

TEST_CASE("gpu timing: the 16-bit ceiling is above what f16 and bf16 products reach", "[measure][gpu]") {
  constexpr int kEdge = 4096;
  constexpr std::int64_t kElements = std::int64_t{kEdge} * kEdge;
  const Bench bench(4 * kElements);  // two operands
  const auto start = Clock::now();
  const Ceilings ceilings = bench.device->measure_ceilings();
  CHECK(seconds_since(start) < 5);  // about 1 s, and loading the library
  const Stream stream = bench.device->launch().stream;
  void* const operands = bench.buffers[0].get();
  const std::pair<MatmulKind, Dtype> kinds[] = {{MatmulKind::f16, Dtype::f16}, {MatmulKind::bf16, Dtype::bf16}};
  for (const auto& [kind, dtype] : kinds) {
    launch_fill_normal(dtype, operands, 2 * kElements, stream_key(1, 0), normal_scale(1), /*offset=*/0, stream);
    const auto seconds = fastest_matmul_seconds(kind, kEdge, operands, stream);
    CHECK(seconds.has_value() == ceilings.f16_flops_per_s.has_value());
    if (!seconds || !ceilings.f16_flops_per_s) continue;
    // 10 %: what rows are allowed, for a clock that moves with power.
    CHECK(2.0 * kElements * kEdge / *seconds < 1.1 * *ceilings.f16_flops_per_s);
  }
}

TEST_CASE("gpu timing: ceilings and noise are those of a GPU", "[measure][gpu]") {
  const Bench bench(kMiB);
  const Ceilings ceilings = bench.device->measure_ceilings();
  REQUIRE(ceilings.read_bytes_per_s);
  REQUIRE(ceilings.copy_bytes_per_s);
  REQUIRE(ceilings.f32_flops_per_s);
  // From the smallest GPU of compute capability 8.0 up to ten times an H200.
  CHECK(*ceilings.read_bytes_per_s > 1e11);
  CHECK(*ceilings.read_bytes_per_s < 5e13);
  CHECK(*ceilings.f32_flops_per_s > 1e12);
  // Cores clock at most at max_sm_mhz, and no multiprocessor since 8.0 does more than 128 multiply-adds a cycle.
  const GpuInfo info = *bench.device->gpu();
  CHECK(*ceilings.f32_flops_per_s < 1.02 * 256.0 * info.sm_count * info.max_sm_mhz * 1e6);
  if (ceilings.f16_flops_per_s) CHECK(*ceilings.f16_flops_per_s > *ceilings.f32_flops_per_s);
  const Noise noise = bench.device->measure_noise();
  CHECK(noise.repeat_ratio < 0.5);
  CHECK(noise.event_resolution_ns > 0);
  CHECK(noise.empty_launch_ns > 0);
  CHECK(noise.empty_launch_ns < 1e5);
}
