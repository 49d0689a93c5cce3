#include <algorithm>
#include <vector>

#include "harness/measure/cache_check.hpp"
#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/measure/l2_clear.hpp"
#include "harness/measure/statistics.hpp"

namespace inferometer {
namespace {

// Median time of what `queue` puts on the stream, each right after what `clear` puts there.
double median_after_ns(const std::function<void()>& clear, const std::function<void()>& queue, Stream stream,
                       int count) {
  const CudaEvent start = make_event();
  const CudaEvent stop = make_event();
  std::vector<double> samples(static_cast<std::size_t>(count) + 1);
  for (double& sample : samples) {
    clear();
    INFEROMETER_CUDA_CHECK(cudaEventRecord(start.get(), stream));
    queue();
    INFEROMETER_CUDA_CHECK(cudaEventRecord(stop.get(), stream));
    INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
    sample = elapsed_ns(start, stop);
  }
  samples.erase(samples.begin());  // the first also loads
  return median(sorted_copy(samples));
}

// The usual way to clear an L2, a memset of several times its size, beside ours.
void compare_clears(CacheCheck& check, Device& gpu, const BufferRead& read, int samples) {
  const Launch launch = gpu.launch();
  const std::size_t l2_bytes = gpu.cache_bytes() / sizeof(std::uint64_t[2]) * sizeof(std::uint64_t[2]);
  const CudaMemory data = make_device_memory(l2_bytes);
  const CudaMemory other = make_device_memory(4 * l2_bytes);
  gpu.set_bytes(data.get(), 1, l2_bytes);
  L2Clear by_reading(l2_bytes, launch.stream);
  const auto read_all = [&] { read(data.get(), l2_bytes, launch); };
  check.after_reading_ns = median_after_ns([&] { by_reading.queue(nullptr); }, read_all, launch.stream, samples);
  check.after_memset_ns =
      median_after_ns([&] { gpu.set_bytes(other.get(), 0, 4 * l2_bytes); }, read_all, launch.stream, samples);
}

}  // namespace

CacheCheck check_gpu_cache(Device& gpu, const CacheCheckEffort& effort) {
  const std::size_t free_before = gpu.free_bytes();  // makes the device the calling thread's
  const std::size_t wanted = 16 * gpu.cache_bytes();
  if (free_before < wanted) throw OutOfMemory("the check of the L2", wanted, free_before);
  const CudaMemory sink = make_device_memory(sizeof(std::uint32_t));
  const BufferRead read = [&](const void* buffer, std::size_t bytes, const Launch& launch) {
    launch_read(buffer, bytes, static_cast<std::uint32_t*>(sink.get()), nullptr, launch.stream);
  };
  CacheCheck check = check_cache(gpu, effort, read);
  compare_clears(check, gpu, read, effort.clear_samples);
  return check;
}

}  // namespace inferometer
