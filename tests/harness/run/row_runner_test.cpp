// The row runner against a device that says it is a GPU: what depends on a GPU, on every machine.
#include "harness/run/row_runner.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>

#include "harness/operator/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/simulated_cache.hpp"
#include "tests/support/test_copy.hpp"

using namespace inferometer;

namespace {

// Host memory and the processor's clock under a GPU's name.
class FakeGpu : public Device {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes > kMemory) throw OutOfMemory("fake GPU", bytes, kMemory);
    ++allocations;
    return host_->allocate(bytes);
  }
  void release(void* memory) noexcept override { host_->release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    host_->fill(spec, seed, tensor, destination);
  }
  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override {
    host_->set_bytes(memory, value, bytes);
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    host_->copy_to_host(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    host_->copy_from_host(destination, source, bytes);
  }
  void synchronize() override {
    if (test::device_poisoned) throw std::runtime_error("cudaErrorIllegalAddress");
  }
  Launch launch() const override { return host_->launch(); }
  std::size_t free_bytes() const override { return kMemory; }
  std::size_t cache_bytes() const override { return kCache; }
  std::optional<GpuInfo> gpu() const override {
    GpuInfo info;
    info.sm = 80;
    return info;
  }
  Timing time(const Run& run, const InputSets& input_sets, const MeasureConfig& config,
              double /*launched_seconds*/) override {
    const int sets = rotates ? input_sets.made() : 1;
    sets_timed = sets;
    for (int set = 0; set < sets; ++set) run(set, launch());
    Timing timing;
    timing.headline = "amortized";
    timing.headline_ns = headline_ns;
    timing.isolated.median_ns = headline_ns;
    timing.isolated.ci_half_width_ratio = ci_half_width_ratio;
    timing.isolated.cache = config.cache;
    timing.amortized = AmortizedTiming{.launches = sets, .mean_ns = headline_ns, .input_sets = sets};
    return timing;
  }
  Ceilings measure_ceilings() override { return {}; }
  Noise measure_noise() override { return {}; }

  static constexpr std::size_t kMemory = std::size_t{1} << 28;
  static constexpr std::size_t kCache = 40000;
  bool rotates = true;
  int allocations = 0;
  int sets_timed = 0;
  double headline_ns = 1000;
  double ci_half_width_ratio = 0;

 private:
  std::unique_ptr<Device> host_ = make_cpu_device(1);
};

struct Bench {
  std::unique_ptr<Device> host = make_cpu_device(1);
  FakeGpu gpu;
  DeviceReport report;
  RowRunner::Settings settings;
  std::vector<std::string> phases;

  Bench() { report.gpu = gpu.gpu(); }

  RowOutcome run(const std::string& variant, std::int64_t n = 1000, bool has_gpu = true) {
    return run_problem("test_copy", variant, {{"n", n}}, has_gpu);
  }

  RowOutcome run_problem(const std::string& name, const std::string& variant, const Fields& problem,
                         bool has_gpu = true) {
    RowRunner runner(*host, has_gpu ? &gpu : nullptr, report, settings);
    SweepRow row;
    row.id = "0123456789ab";
    row.operator_name = name;
    row.variant = variant;
    row.problem = problem;
    return runner.run(row, [this](std::string_view phase) { phases.emplace_back(phase); });
  }
};

}  // namespace

TEST_CASE("row: prepare, check, warm-up, measure and a second check, in this order", "[run][row]") {
  Bench bench;
  const RowOutcome outcome = bench.run("cuda.right");
  CHECK(outcome.record.reason == "");
  CHECK(outcome.record.status == Status::ok);
  CHECK(bench.phases == std::vector<std::string>{"prepare", "check", "warm-up", "measure", "check"});
  CHECK(outcome.record.problem.size() == 4);  // every field, defaults too
}

TEST_CASE("row: a process is done for once a profiler looked at a row of its GPU", "[run][row][profiler]") {
  Bench bench;
  CHECK_FALSE(bench.run("cuda.right").profiled);
  bench.settings.measure.kernel_times = true;
  CHECK(bench.run("cuda.right").profiled);
  CHECK_FALSE(bench.run("cpu.right").profiled);
  CHECK_FALSE(bench.run("cuda.right", 1000, /*has_gpu=*/false).profiled);
}

TEST_CASE("row: input sets together exceed twice the cache, within 64 and the memory", "[run][row]") {
  Bench bench;
  bench.run("cuda.right", 1000);
  CHECK(bench.gpu.sets_timed == 21);  // 4000 bytes of input each; 20 would be exactly twice 40000
  const RowOutcome tiny = bench.run("cuda.right", 10);
  CHECK(bench.gpu.sets_timed == 64);
  CHECK(tiny.record.timing->amortized->cache == CacheMode::warm);  // 64 sets of 40 bytes stay in the cache
  const RowOutcome large = bench.run("cuda.right", 100000);
  CHECK(bench.gpu.sets_timed == 1);
  CHECK(large.record.timing->amortized->cache == CacheMode::cold);
  CHECK(large.record.memory_bytes.at("peak") == 800000);  // one set: x and y
  bench.settings.limits.device_bytes = 20000;
  bench.run("cuda.right", 1000);
  CHECK(bench.gpu.sets_timed == 2);  // 8000 bytes each
  bench.settings.measure.cache = CacheMode::warm;
  bench.run("cuda.right", 1000);
  CHECK(bench.gpu.sets_timed == 1);
}

TEST_CASE("row: a cold time on a device whose cache is not cleared is flagged, a warm one and others are not",
          "[run][row][doctor]") {
  Bench bench;
  const auto flags = [&](const char* variant, std::int64_t n = 1000) {
    return bench.run(variant, n).record.timing->isolated.flags;
  };
  test::SimulatedCache cache;
  cache.clears = false;
  const Examination uncleared = test::examined(cache);
  bench.report.gpu_ceilings = uncleared.ceilings;
  bench.report.gpu_cache.check = uncleared.cache;
  CHECK(flags("cuda.right") == std::vector<std::string>{"cache_not_cleared"});
  const std::vector<std::string> of_cpu = flags("cpu.right");
  CHECK(std::find(of_cpu.begin(), of_cpu.end(), "cache_not_cleared") == of_cpu.end());
  cache.clears = true;
  cache.holds_bytes *= 8;
  bench.report.gpu_cache.check = test::examined(cache).cache;
  CHECK(flags("cuda.right") == std::vector<std::string>{"rotation_in_cache"});
  CHECK(flags("cuda.right", 10).empty());  // whose sets stay in the cache and say so
  bench.settings.measure.cache = CacheMode::warm;
  CHECK(flags("cuda.right").empty());
}

TEST_CASE("row: input sets that the timing does not rotate over are not made", "[run][row]") {
  Bench bench;
  bench.gpu.rotates = false;
  CHECK(bench.run("cuda.right", 1000).record.status == Status::ok);
  CHECK(bench.gpu.allocations == 2);  // x and y of one set, where twice the cache would take 21
}

TEST_CASE("row: the expected values of a problem are kept while others are run", "[run][row]") {
  Bench bench;
  RowRunner runner(*bench.host, &bench.gpu, bench.report, bench.settings);
  const auto expect_calls_after = [&](std::int64_t n) {
    SweepRow row;
    row.id = "0123456789ab";
    row.operator_name = "test_copy";
    row.variant = "cuda.right";
    row.problem = {{"n", n}};
    for (const Metric& metric : runner.run(row, [](std::string_view) {}).record.metrics)
      if (metric.name == "expect_calls") return static_cast<int>(metric.value);
    return -1;
  };
  const int first = expect_calls_after(1000);
  CHECK(expect_calls_after(2000) == first + 1);
  CHECK(expect_calls_after(1000) == first + 1);
  // More than is kept of earlier problems: the oldest go.
  CHECK(expect_calls_after(9'000'000) == first + 2);
  CHECK(expect_calls_after(3000) == first + 3);
  CHECK(expect_calls_after(1000) == first + 4);
}

TEST_CASE("row: a GPU variant is unsupported with the reason where it cannot run", "[run][row]") {
  Bench bench;
  CHECK(bench.run("cuda.sm90").record.status == Status::unsupported);
  CHECK(bench.run("cuda.sm90").record.reason == "needs compute capability 9.0 or newer, this GPU has 8.0");
  bench.report.gpu_absent = "no CUDA driver is installed";
  const RowOutcome outcome = bench.run("cuda.right", 1000, false);
  CHECK(outcome.record.status == Status::unsupported);
  CHECK(outcome.record.reason == "no CUDA driver is installed");
  CHECK_FALSE(outcome.device_lost);
}

TEST_CASE("row: a device that keeps answering with errors is lost, and the row crashed", "[run][row]") {
  Bench bench;
  const RowOutcome outcome = bench.run("cuda.poisons");
  test::device_poisoned = false;
  CHECK(outcome.device_lost);
  CHECK(outcome.record.status == Status::crashed);
  CHECK(outcome.record.reason == "cudaErrorIllegalAddress");
  CHECK_FALSE(outcome.record.timing);
}

TEST_CASE("row: out of memory says the bytes asked for and the limit, or what is free", "[run][row]") {
  Bench bench;
  bench.settings.limits.device_bytes = 1000;
  const RowOutcome outcome = bench.run("cuda.right", 1000);
  CHECK(outcome.record.status == Status::out_of_memory);
  CHECK_THAT(outcome.record.reason, test::contains_text("asked for 8000 bytes"));
  CHECK_THAT(outcome.record.reason, test::contains_text(", the limit limits.device_bytes is 1000 bytes"));
  CHECK_FALSE(outcome.device_lost);
}

TEST_CASE("row: what cannot fit is refused before any of it is made", "[run][row]") {
  Bench bench;
  bench.settings.limits.host_bytes = 100'000'000;
  // A block table of 300 million entries, 1.2 GB; K and V of 8 elements in f32 a token and 3 free blocks.
  constexpr std::int64_t kTokens = 300'000'000;
  const RowOutcome outcome = bench.run_problem("attention_decode", "cpu.naive",
                                               {{"context", kTokens},
                                                {"head_dim", std::int64_t{8}},
                                                {"block_size", std::int64_t{1}},
                                                {"dtype", std::string("f32")}});
  CHECK(outcome.record.status == Status::out_of_memory);
  constexpr std::int64_t kAsked = 2 * (kTokens + 3) * 32 + kTokens * 4 + 4 /* seq_lens */ + 2 * 32 + 4 /* lse */;
  CHECK_THAT(outcome.record.reason, test::contains_text("asked for " + std::to_string(kAsked) + " bytes"));
  CHECK_THAT(outcome.record.reason, test::contains_text(", the limit limits.host_bytes is 100000000 bytes"));
  CHECK(bench.phases.empty());
}

TEST_CASE("row: a median that is uncertain by more than itself is suspect", "[run][row]") {
  Bench bench;
  bench.gpu.ci_half_width_ratio = 350.59;
  const RowOutcome outcome = bench.run("cuda.right");
  CHECK(outcome.record.status == Status::suspect);
  CHECK_THAT(outcome.record.reason, test::contains_text("uncertain by 35059 % of itself"));
  CHECK(outcome.record.timing.has_value());
  bench.gpu.ci_half_width_ratio = 1;
  CHECK(bench.run("cuda.right").record.status == Status::ok);
}

#ifndef __SANITIZE_ADDRESS__  // under which an allocation that fails ends the process
// What a launch allocates for its numbers then fails. Its stack may still grow, and OpenMP find room for its team.
void use_up_memory() {
  constexpr std::size_t kLeast = std::size_t{1} << 16;
  const rlimit none{.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_DATA, &none);
  for (std::size_t bytes = std::size_t{1} << 30; bytes >= kLeast; bytes /= 2) {
    void* volatile taken = nullptr;  // used: the allocation stays
    do taken = std::malloc(bytes);
    while (taken != nullptr);
  }
}

TEST_CASE("row: a launch on threads that finds no memory throws, and its process goes on", "[run][row]") {
  const std::pair<std::string, Fields> rows[] = {
      {"attention_prefill",
       {{"q_len", std::int64_t{2048}}, {"kv_len", std::int64_t{2048}}, {"dtype", std::string("f32")}}},
      {"attention_decode", {{"context", std::int64_t{2048}}, {"dtype", std::string("f32")}}}};
  for (const auto& [name, fields] : rows) {
    CAPTURE(name);
    const Operator& op = *find_operator(name);
    const Variant& variant = *find_variant(name, "cpu.naive");
    const auto problem = op.parse(fields);
    std::vector<std::vector<std::byte>> memory;
    std::vector<void*> pointers;
    for (const TensorSpec& spec : op.tensors(problem.get())) {
      memory.emplace_back(static_cast<std::size_t>(spec.bytes()));
      pointers.push_back(memory.back().data());
      fill_host(spec, 1, pointers.size(), pointers.back(), 1);
    }
    std::vector<std::byte> workspace(variant.workspace_bytes(problem.get()));
    const auto tensors = op.bind(problem.get(), pointers);
    Launch launch;  // on one thread: another one's stack would need memory as well
    launch.workspace = workspace;

    constexpr int kThrew = 3;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (const int signal : {SIGABRT, SIGSEGV}) std::signal(signal, SIG_DFL);  // Catch's own handlers report
      use_up_memory();
      try {
        variant.run(problem.get(), tensors.get(), launch);
      } catch (const std::bad_alloc&) {
        _exit(kThrew);
      }
      _exit(EXIT_SUCCESS);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_FALSE(WIFSIGNALED(status));
    CHECK(WEXITSTATUS(status) == kThrew);
  }
}
#endif

TEST_CASE("row: faster than the ceiling allows is suspect, with its time", "[run][row]") {
  Bench bench;
  bench.report.gpu_ceilings.read_bytes_per_s = 1e12;  // 800000 bytes need 800 ns
  bench.gpu.headline_ns = 700;
  const RowOutcome outcome = bench.run("cuda.right", 100000);
  CHECK(outcome.record.status == Status::suspect);
  CHECK(outcome.record.reason == "1.14 times as fast as the memory ceiling allows");
  CHECK(outcome.record.timing.has_value());
  bench.gpu.headline_ns = 900;
  CHECK(bench.run("cuda.right", 100000).record.status == Status::ok);
}

TEST_CASE("row: a name this program does not have is an error, not a crash", "[run][row]") {
  Bench bench;
  CHECK(bench.run("cuda.other").record.status == Status::error);
  CHECK(bench.run("cuda.right", -5).record.status == Status::error);
  CHECK_THAT(bench.run("cuda.right", -5).record.reason, test::contains_text("n must be"));
}
