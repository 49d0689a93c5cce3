#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/cpu_slices.hpp"
#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace inferometer;
using namespace std::chrono_literals;

namespace {

void busy_for(std::chrono::nanoseconds duration) {
  const auto start = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - start < duration) {
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// On a shared machine other work may spoil a measurement, and on a crowded one most of them: one good one is enough.
template <class Measure, class Good>
auto one_of_many(const Measure& measure, const Good& good) {
  auto result = measure();
  for (int attempt = 1; attempt < 50 && !good(result); ++attempt) result = measure();
  return result;
}

// Of all threads so far; other programs hardly move it.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

long preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Multiply-adds a second, each of which waits for the one before it: the fastest of some passes shorter than a
// scheduler's slice.
double dependent_flops_per_s() {
  constexpr int kSteps = 50'000;
  volatile float source = 0.5F;
  const float factor = source;
  double best = 0;
  for (int pass = 0; pass < 100; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    float value = source;
    for (int step = 0; step < kSteps; ++step) value = value * factor + factor;
    source = value / value / 2;
    best = std::max(best, 2 * kSteps / seconds_since(start));
  }
  return best;
}

// One word a cache line: instructions must not hide the memory, not even those that sanitizers add.
std::uint64_t sum_of_lines(const std::vector<std::uint64_t>& words) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < words.size(); i += 8) sum += words[i];
  return sum;
}

}  // namespace

TEST_CASE("cpu device: both estimators give the time of a launch of known length", "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  const Timing timing = one_of_many(
      [&] {
        return device->time([](int, const Launch&) { busy_for(200us); }, 1,
                            {.cache = CacheMode::warm, .max_seconds = 0.4});
      },
      [](const Timing& one) { return one.isolated.min_ns < 220e3; });
  // A launch cannot be shorter than it spins. Other programs may interrupt most samples, but hardly all.
  CHECK(timing.isolated.min_ns >= 200e3);
  CHECK(timing.isolated.min_ns < 220e3);
  REQUIRE(timing.amortized);
  CHECK(timing.amortized->mean_ns >= 200e3);
  CHECK(timing.headline == "isolated");
  CHECK(timing.headline_ns == timing.isolated.median_ns);
  CHECK_FALSE(timing.suspect);
  CHECK(timing.isolated.cache == CacheMode::warm);
}

TEST_CASE("cpu device: a timing says that other work took the processor in its samples", "[measure][cpu]") {
  // Two programs take turns on one processor: this one, and a child that never rests.
  cpu_set_t all;
  REQUIRE(sched_getaffinity(0, sizeof all, &all) == 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
  REQUIRE(sched_setaffinity(0, sizeof one, &one) == 0);
  const pid_t rival = fork();
  REQUIRE(rival >= 0);
  if (rival == 0) {
    busy_for(1min);  // is killed long before
    _exit(EXIT_SUCCESS);
  }
  const auto device = make_cpu_device(1);
  // How the system shares the processor out is its affair: on a busy machine slices may fall between samples.
  const long before = preemptions();
  const Timing timing = one_of_many(
      [&] {
        return device->time([](int, const Launch&) { busy_for(10ms); }, 1,
                            {.cache = CacheMode::warm, .max_seconds = 1.0, .relative_ci = 0});
      },
      [&](const Timing& taken) { return !taken.isolated.flags.empty() || preemptions() == before; });
  kill(rival, SIGKILL);
  waitpid(rival, nullptr, 0);
  sched_setaffinity(0, sizeof all, &all);
  if (preemptions() == before) {
    WARN("this system does not tell when a thread loses its processor");
    return;
  }
  CHECK(timing.isolated.flags == std::vector<std::string>{"interrupted"});
}

TEST_CASE("cpu device: clearing a large cache counts in the seconds allowed", "[measure][cpu]") {
  const auto device = make_cpu_device(0);
  // Without it, all samples together would take 2 ms.
  const Timing timing = device->time([](int, const Launch&) { busy_for(1us); }, 1,
                                     {.max_samples = 2000, .max_seconds = 0.3, .relative_ci = 0});
  CHECK(timing.isolated.stop_reason == "max_seconds");
  CHECK(timing.isolated.samples >= 1);
}

TEST_CASE("cpu device: a long launch before is the warm-up of launches that are long themselves, and of no others",
          "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  const MeasureConfig one_sample{.cache = CacheMode::warm, .min_samples = 1, .max_samples = 1, .max_seconds = 0.2};
  int launches = 0;
  // What is set up at the first launch and again at the second, as by a library that tries its kernels.
  const Timing timing = device->time([&](int, const Launch&) { busy_for(++launches == 1 ? 300ms : 100us); },
                                     {.count = 1}, one_sample, /*launched_seconds=*/1.5);
  CHECK(timing.isolated.samples == 1);
  CHECK(timing.isolated.median_ns < 300e6);  // no sample of the launch that came first
  const auto launches_after = [&](double launched_seconds) {
    launches = 0;
    device->time([&](int, const Launch&) { ++launches, busy_for(1100ms); }, {.count = 1}, one_sample, launched_seconds);
    return launches;
  };
  CHECK(launches_after(1.5) == 1);
  CHECK(launches_after(0.5) == 2);
}

TEST_CASE("cpu device: a launch that does nothing is suspect", "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  for (const CacheMode cache : {CacheMode::cold, CacheMode::warm}) {
    const Timing timing =
        one_of_many([&] { return device->time([](int, const Launch&) {}, 1, {.cache = cache, .max_seconds = 0.2}); },
                    [](const Timing& one) { return one.suspect; });
    CAPTURE(timing.isolated.median_ns);
    CHECK(timing.suspect);
    CHECK(timing.suspect_reason.find("no longer than an empty one") != std::string::npos);
  }
}

TEST_CASE("cpu device: amortized launches rotate over all sets when cold, isolated ones use the first",
          "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  std::vector<int> launches(3, 0);
  const auto run = [&](int set, const Launch&) {
    ++launches.at(static_cast<std::size_t>(set));
    busy_for(2us);  // far below 50 us also where other programs take most of the processor
  };
  const Timing cold = device->time(run, 3, {.max_samples = 40, .max_seconds = 0.2});
  REQUIRE(cold.amortized);
  CHECK(cold.amortized->input_sets == 3);
  CHECK(launches[1] == launches[2]);
  CHECK(launches[1] >= cold.amortized->launches / 3);  // the search for a block's length comes on top
  CHECK(launches[0] > launches[1]);
  CHECK(cold.headline == "amortized");

  launches.assign(3, 0);
  const Timing warm = device->time(run, 3, {.cache = CacheMode::warm, .max_samples = 40, .max_seconds = 0.2});
  REQUIRE(warm.amortized);
  CHECK(warm.amortized->input_sets == 1);
  CHECK(launches[1] + launches[2] == 0);
}

TEST_CASE("cpu device: further sets are made only where a turn over them fits, and after isolated samples",
          "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  int launches = 0;
  int further = 0;
  std::vector<int> made_after;  // so many launches
  const InputSets sets{.count = 3, .make = [&] {
                         made_after.push_back(launches);
                         return 2;  // memory was short
                       }};
  const auto run_for = [&](auto time) {
    return [&, time](int set, const Launch&) {
      ++launches;
      if (set > 0) ++further;
      busy_for(time);
    };
  };
  const MeasureConfig config{.max_samples = 5, .max_seconds = 0.2};
  CHECK_FALSE(device->time(run_for(30ms), sets, config, 0).amortized);
  CHECK(made_after.empty());
  CHECK(further == 0);

  launches = 0;
  const Timing timing = device->time(run_for(2us), sets, config, 0);
  REQUIRE(timing.amortized);
  CHECK(timing.amortized->input_sets == 2);
  REQUIRE(made_after.size() == 1);
  CHECK(made_after[0] >= timing.isolated.samples);
  CHECK(further > 0);
}

TEST_CASE("cpu device: a launch longer than its seconds is timed isolated, a few times", "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  int launches = 0;
  const auto run = [&](int, const Launch&) {
    ++launches;
    busy_for(30ms);
  };
  const Timing timing = device->time(run, 4, {.cache = CacheMode::warm, .max_seconds = 0.04});
  CHECK_FALSE(timing.amortized);
  CHECK(timing.isolated.stop_reason == "max_seconds");
  CHECK(launches <= 4);
}

TEST_CASE("cpu device: it rests before each estimator, and not in the seconds of measuring", "[measure][cpu]") {
  constexpr double kRest = 0.3;
  const auto device = make_cpu_device(1);
  std::vector<std::size_t> before_rest;  // launches so far, at each pause as long as a rest
  std::size_t launches = 0;
  auto last = std::chrono::steady_clock::now();
  const auto run = [&](int, const Launch&) {
    if (launches > 0 && seconds_since(last) >= kRest) before_rest.push_back(launches);
    ++launches;
    busy_for(1ms);
    last = std::chrono::steady_clock::now();
  };
  const Timing timing = one_of_many(
      [&] {
        before_rest.clear();
        launches = 0;
        return device->time(run, 1,
                            {.cache = CacheMode::warm,
                             .min_samples = 30,
                             .max_samples = 30,
                             .max_seconds = 0.2,
                             .rest_seconds = kRest});
      },
      [&](const Timing& one) { return before_rest.size() == 2 && one.amortized && one.isolated.samples > 1; });
  REQUIRE(timing.amortized);
  REQUIRE(before_rest.size() == 2);
  CHECK(before_rest[0] >= 1);  // the warm-up
  CHECK(before_rest[1] - before_rest[0] == static_cast<std::size_t>(timing.isolated.samples));
  // A rest that counted would have used up both estimators' seconds: one sample, one block.
  CHECK(timing.isolated.samples > 1);
  CHECK(timing.amortized->launches > 1);
  CHECK(timing.isolated.rest_seconds == kRest);
}

TEST_CASE("cpu device: what a launch throws reaches the caller", "[measure][cpu]") {
  const auto device = make_cpu_device(1);
  CHECK_THROWS_WITH(device->time([](int, const Launch&) { throw std::runtime_error("no such tile"); }, 1, {}),
                    "no such tile");
}

TEST_CASE("cpu device: a cold read takes longer than a warm one", "[measure][cpu]") {
  const auto device = make_cpu_device(0);
  const std::vector<std::uint64_t> words(1 << 14, 3);  // they fit the caches that other processors do not share
  std::uint64_t sum = 0;
  const auto read = [&](int, const Launch&) { sum += sum_of_lines(words); };
  const auto [cold, warm] = one_of_many(
      [&] {
        return std::pair(device->time(read, 1, {.max_samples = 100, .max_seconds = 1}),
                         device->time(read, 1, {.cache = CacheMode::warm, .max_samples = 1000, .max_seconds = 1}));
      },
      [](const auto& both) { return both.first.isolated.min_ns > both.second.isolated.min_ns; });
  CHECK(sum > 0);
  CHECK(cold.isolated.min_ns > warm.isolated.min_ns);
}

TEST_CASE("cpu device: ceilings are rates that a machine can have, measured in little time", "[measure][cpu]") {
  const auto device = make_cpu_device(0);
  device->measure_ceilings();  // first touch of the buffer
  // A dependent chain of scalar multiply-adds takes 4 cycles or more for each; vectors and independent accumulators
  // must be far above it.
  double seconds = 0;
  double chain = 0;
  const Ceilings ceilings = one_of_many(
      [&] {
        const double start = processor_seconds();
        const Ceilings measured = device->measure_ceilings();
        seconds = processor_seconds() - start;
        chain = dependent_flops_per_s();
        return measured;
      },
      [&](const Ceilings& one) { return one.f32_flops_per_s > 4 * chain; });
  CHECK(seconds < 3 * device->launch().threads);  // 0.3 s on an idle machine
  REQUIRE(ceilings.read_bytes_per_s);
  REQUIRE(ceilings.copy_bytes_per_s);
  REQUIRE(ceilings.f32_flops_per_s);
  CHECK_FALSE(ceilings.f16_flops_per_s);
  CHECK(*ceilings.read_bytes_per_s > 1e8);
  CHECK(*ceilings.read_bytes_per_s < 1e13);
  CHECK(*ceilings.copy_bytes_per_s > 1e8);
  CHECK(*ceilings.copy_bytes_per_s < 1e13);
  CHECK(*ceilings.f32_flops_per_s > 4 * chain);
}

TEST_CASE("cpu device: noise is measured and finite", "[measure][cpu]") {
  const Noise noise = make_cpu_device(1)->measure_noise();
  CHECK(noise.repeat_ratio >= 0);
  CHECK(noise.event_resolution_ns > 0);
  CHECK(noise.event_resolution_ns < 1e6);
  CHECK(noise.empty_launch_ns >= noise.event_resolution_ns / 2);
}

TEST_CASE("cpu device: memory can be poisoned, zeroed and copied", "[measure][cpu]") {
  const auto device = make_cpu_device(2);
  void* const memory = device->allocate(1000);
  device->set_bytes(memory, 0xff, 1000);
  std::vector<unsigned char> read(1000);
  device->copy_to_host(read.data(), memory, 1000);
  CHECK(read == std::vector<unsigned char>(1000, 0xff));
  device->set_zero(memory, 999);
  device->copy_to_host(read.data(), memory, 1000);
  CHECK(read[998] == 0);
  CHECK(read[999] == 0xff);
  device->release(memory);
  CHECK(device->launch().threads == 2);
  CHECK_FALSE(device->gpu());
}

TEST_CASE("cpu device: the slices of a team cover a buffer once, in whole pages", "[measure][cpu]") {
  std::vector<std::byte> buffer(10 * 4096 + 17);
  for (const int threads : {1, 3, 16}) {
    CAPTURE(threads);
    std::size_t covered = 0;
    for (int thread = 0; thread < threads; ++thread) {
      const auto slice = thread_slice(std::span(buffer), thread, threads);
      CHECK(slice.data() == buffer.data() + covered);
      covered += slice.size();
      CHECK((covered % 4096 == 0 || covered == buffer.size()));
    }
    CHECK(covered == buffer.size());
  }
}

#ifndef INFEROMETER_WITH_CUDA
TEST_CASE("gpu device: a build without CUDA says so", "[measure][gpu]") {
  std::string reason;
  CHECK(make_gpu_device(0, reason) == nullptr);
  CHECK(reason.find("this build has no CUDA: ") == 0);

  const char* set = std::getenv("INFEROMETER_CUDA");
  const std::string before = set == nullptr ? "" : set;
  ::setenv("INFEROMETER_CUDA", "off", 1);
  make_gpu_device(0, reason);
  CHECK(reason == "this build has no CUDA: INFEROMETER_CUDA=off leaves it out");
  ::unsetenv("INFEROMETER_CUDA");
  make_gpu_device(0, reason);
  CHECK(reason.find("it needs the CUDA Toolkit and a GPU") != std::string::npos);
  if (set != nullptr) ::setenv("INFEROMETER_CUDA", before.c_str(), 1);
}
#endif
