#include "harness/measure/profiler.hpp"

#ifdef INFEROMETER_WITH_CUDA
#include <cuda_profiler_api.h>
#endif

namespace inferometer {

#ifdef INFEROMETER_WITH_CUDA

// What they return says only whether a profiler is attached.
ProfiledPart::ProfiledPart(bool on_gpu) : on_gpu_(on_gpu) {
  if (on_gpu_) static_cast<void>(cudaProfilerStart());
}
ProfiledPart::~ProfiledPart() {
  if (on_gpu_) static_cast<void>(cudaProfilerStop());
}

#else

ProfiledPart::ProfiledPart(bool on_gpu) : on_gpu_(on_gpu) {}
ProfiledPart::~ProfiledPart() = default;

#endif

}  // namespace inferometer
