// The host's processors as a device: memory from the kernel, launches that return when done.
#include <omp.h>

#include <cstring>

#include "harness/measure/cpu_cache.hpp"
#include "harness/measure/cpu_ceilings.hpp"
#include "harness/measure/cpu_sampler.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/host_memory.hpp"

namespace inferometer {
namespace {

Launch on_threads(int threads) {
  Launch launch;
  launch.threads = threads;
  return launch;
}

class CpuDevice : public Device {
 public:
  explicit CpuDevice(int threads)
      : threads_(threads > 0 ? threads : omp_get_num_procs()),
        cache_bytes_(last_level_cache_bytes()),
        cache_(memory_, cache_bytes_, threads_),
        sampler_(cache_, on_threads(threads_)) {}

  void* allocate(std::size_t bytes) override { return memory_.allocate(bytes); }
  void release(void* memory) noexcept override { memory_.release(memory); }
  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    fill_host(spec, seed, tensor, destination, threads_);
  }
  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override { std::memset(memory, value, bytes); }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    std::memcpy(destination, source, bytes);
  }
  void synchronize() override {}
  Launch launch() const override { return on_threads(threads_); }

  std::size_t free_bytes() const override { return memory_.free_bytes(); }
  std::size_t cache_bytes() const override { return cache_bytes_; }
  std::optional<GpuInfo> gpu() const override { return std::nullopt; }

  Timing time(const Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds) override {
    return sampler_.time(run, sets, config, launched_seconds);
  }
  Ceilings measure_ceilings() override { return measure_cpu_ceilings(cache_, threads_); }
  Noise measure_noise() override { return sampler_.measure_noise(); }

 private:
  int threads_;
  std::size_t cache_bytes_;
  HostMemory memory_;
  CpuCacheClear cache_;  // holds a block of memory_
  CpuSampler sampler_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(int threads) { return std::make_unique<CpuDevice>(threads); }

}  // namespace inferometer
