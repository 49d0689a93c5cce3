// Empties a GPU's L2 of a row's data before a cold sample. CUDA builds only.
#pragma once

#include <cstddef>

#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_kernels.hpp"

namespace inferometer {

// Clears by reading a buffer of four times the L2. Writing it instead would leave dirty lines behind, whose write-back
// is then charged to the kernel under test: a 64 MiB read on an H200 takes 24.8 us after a memset, 18.6 us after this.
class L2Clear {
 public:
  L2Clear(std::size_t l2_bytes, Stream stream);

  // Queues one clearing, which leaves a sample of the SM clock in `clock` unless that is nullptr. The buffer is
  // allocated, written and read once at the first use.
  void queue(ClockSample* clock);

  // Device memory that the first use will still take.
  std::size_t pending_bytes() const { return buffer_ ? 0 : bytes_; }

 private:
  std::size_t bytes_;
  Stream stream_;
  CudaMemory buffer_;
  CudaMemory sink_;
};

}  // namespace inferometer
