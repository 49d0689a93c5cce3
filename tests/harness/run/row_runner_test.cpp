// The row runner against a device that says it is a GPU: what depends on a GPU, on every machine.
#include "harness/run/row_runner.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/test_copy.hpp"

using namespace inferometer;

namespace {

// Host memory and the processor's clock under a GPU's name.
class FakeGpu : public Device {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes > kMemory) throw OutOfMemory("fake GPU", bytes, kMemory);
    return host_->allocate(bytes);
  }
  void release(void* memory) noexcept override { host_->release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    host_->fill(spec, seed, tensor, destination);
  }
  void set_all_bits(void* memory, std::size_t bytes) override { host_->set_all_bits(memory, bytes); }
  void set_zero(void* memory, std::size_t bytes) override { host_->set_zero(memory, bytes); }
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
  Timing time(const Run& run, int sets, const MeasureConfig& config) override {
    sets_timed = sets;
    for (int set = 0; set < sets; ++set) run(set, launch());
    Timing timing;
    timing.headline = "amortized";
    timing.headline_ns = headline_ns;
    timing.isolated.median_ns = headline_ns;
    timing.isolated.cache = config.cache;
    timing.amortized = AmortizedTiming{.launches = sets, .mean_ns = headline_ns, .input_sets = sets};
    return timing;
  }
  Ceilings measure_ceilings() override { return {}; }
  Noise measure_noise() override { return {}; }

  static constexpr std::size_t kMemory = std::size_t{1} << 28;
  static constexpr std::size_t kCache = 40000;
  int sets_timed = 0;
  double headline_ns = 1000;

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
    RowRunner runner(*host, has_gpu ? &gpu : nullptr, report, settings);
    SweepRow row;
    row.id = "0123456789ab";
    row.operator_name = "test_copy";
    row.variant = variant;
    row.problem = {{"n", n}};
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

TEST_CASE("row: out of memory says the bytes asked for and free", "[run][row]") {
  Bench bench;
  bench.settings.limits.device_bytes = 1000;
  const RowOutcome outcome = bench.run("cuda.right", 1000);
  CHECK(outcome.record.status == Status::out_of_memory);
  CHECK_THAT(outcome.record.reason, test::contains_text("asked for 4000 bytes"));
  CHECK_THAT(outcome.record.reason, test::contains_text("1000 bytes free"));
  CHECK_FALSE(outcome.device_lost);
}

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
