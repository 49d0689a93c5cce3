// One GPU as a device: plain cudaMalloc memory, one stream on which all of a row's work is queued.
#include <cuda_runtime_api.h>
#include <omp.h>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_ceilings.hpp"
#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_info.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/measure/gpu_sampler.hpp"
#include "harness/measure/nvml.hpp"
#include "harness/operator/generate.hpp"

namespace inferometer {
namespace {

// Makes `ordinal` the calling thread's GPU; then a stream that does not wait for the legacy stream, which a launch
// under capture may not do.
CudaStream make_stream_on(int ordinal) {
  INFEROMETER_CUDA_CHECK(cudaSetDevice(ordinal));
  cudaStream_t stream = nullptr;
  INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return CudaStream(stream);
}

Launch on_stream(Stream stream) {
  Launch launch;
  launch.stream = stream;
  return launch;
}

class GpuDevice : public Device {
 public:
  explicit GpuDevice(int ordinal)
      : ordinal_(ordinal),
        stream_(make_stream_on(ordinal)),
        nvml_(pci_bus_id(ordinal)),
        info_(read_gpu_info(ordinal, nvml_)),
        sampler_(on_stream(stream_.get()), info_.l2_bytes, nvml_) {}

  void* allocate(std::size_t bytes) override {
    select();
    return make_device_memory(bytes).release();
  }
  void release(void* memory) noexcept override { CudaMemory{memory}.reset(); }

  void fill(const TensorSpec& spec, std::uint64_t seed, std::uint64_t tensor, void* destination) override {
    select();
    check_spec(spec);
    const auto bytes = static_cast<std::size_t>(spec.bytes());
    const std::uint64_t key = stream_key(seed, tensor);
    if (spec.role == Role::output) return set_bytes(destination, spec.poison, bytes);
    if (const auto* const normal = std::get_if<Normal>(&spec.source)) {
      launch_fill_normal(spec.dtype, destination, spec.elements(), key, normal_scale(normal->stddev),
                         normal_offset(normal->mean, normal->stddev), stream_.get());
    } else if (const auto* const random = std::get_if<RandomBytes>(&spec.source)) {
      launch_fill_random_bytes(destination, bytes, key, stream_.get(), random->without_e4m3_nan);
    } else {  // chosen or computed values: made on the host
      std::vector<std::byte> values(bytes);
      fill_host(spec, seed, tensor, values.data(), omp_get_num_procs());
      return copy_from_host(destination, values.data(), values.size());
    }
    for (const ElementRange& range : spec.unused)
      launch_set_all_bits(destination, range, dtype_bytes(spec.dtype), stream_.get());
  }

  void set_bytes(void* memory, std::uint8_t value, std::size_t bytes) override {
    INFEROMETER_CUDA_CHECK(cudaMemsetAsync(memory, value, bytes, stream_.get()));
  }
  void copy_to_host(void* destination, const void* source, std::size_t bytes) override {
    copy(destination, source, bytes);
  }
  void copy_from_host(void* destination, const void* source, std::size_t bytes) override {
    copy(destination, source, bytes);
  }
  void synchronize() override { INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream_.get())); }
  Launch launch() const override { return on_stream(stream_.get()); }

  std::size_t free_bytes() const override {
    select();
    const std::size_t free = free_device_bytes();
    const std::size_t pending = sampler_.pending_bytes();  // a row that takes all must still be timed
    return free > pending ? free - pending : 0;
  }
  std::size_t cache_bytes() const override { return info_.l2_bytes; }
  std::optional<GpuInfo> gpu() const override { return info_; }

  Timing time(const Run& run, const InputSets& sets, const MeasureConfig& config, double launched_seconds) override {
    select();
    return sampler_.time(run, sets, config, launched_seconds);
  }
  Ceilings measure_ceilings() override {
    select();
    return measure_gpu_ceilings(launch(), info_.l2_bytes);
  }
  Noise measure_noise() override {
    select();
    return sampler_.measure_noise();
  }

 private:
  void select() const { INFEROMETER_CUDA_CHECK(cudaSetDevice(ordinal_)); }  // the current GPU is each thread's own

  void copy(void* destination, const void* source, std::size_t bytes) {
    INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(destination, source, bytes, cudaMemcpyDefault, stream_.get()));
    synchronize();
  }

  int ordinal_;
  CudaStream stream_;
  Nvml nvml_;
  GpuInfo info_;
  GpuSampler sampler_;
};

}  // namespace

std::unique_ptr<Device> make_gpu_device(int ordinal, std::string& reason) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) {
    cudaGetLastError();  // answered here
    int driver = 0;
    const bool no_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver == 0;
    reason = "no usable GPU: ";
    reason += no_driver ? "no NVIDIA driver is loaded"
                        : std::string(cudaGetErrorName(code)) + " (" + cudaGetErrorString(code) + ")";
    return nullptr;
  }
  if (ordinal < 0 || ordinal >= count) {
    reason = "no GPU " + std::to_string(ordinal) + ": this machine has " + std::to_string(count);
    return nullptr;
  }
  return std::make_unique<GpuDevice>(ordinal);
}

}  // namespace inferometer
