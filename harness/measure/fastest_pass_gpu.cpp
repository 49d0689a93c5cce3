#include <algorithm>
#include <vector>

#include "harness/measure/fastest_pass.hpp"
#include "harness/measure/gpu_handles.hpp"

namespace inferometer {

double fastest_pass_seconds(const std::function<void()>& queue_pass, int passes, Stream stream) {
  std::vector<CudaEvent> events(static_cast<std::size_t>(passes) + 1);
  for (CudaEvent& event : events) event = make_event();
  for (const CudaEvent& event : events) {
    queue_pass();
    INFEROMETER_CUDA_CHECK(cudaEventRecord(event.get(), stream));
  }
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
  double best_ns = elapsed_ns(events[0], events[1]);
  for (std::size_t i = 2; i < events.size(); ++i) best_ns = std::min(best_ns, elapsed_ns(events[i - 1], events[i]));
  return best_ns * 1e-9;
}

}  // namespace inferometer
