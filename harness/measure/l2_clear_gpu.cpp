#include "harness/measure/l2_clear.hpp"

namespace inferometer {

L2Clear::L2Clear(std::size_t l2_bytes, Stream stream)
    : bytes_(4 * l2_bytes / sizeof(std::uint64_t[2]) * sizeof(std::uint64_t[2])), stream_(stream) {}

void L2Clear::queue(ClockSample* clock) {
  if (!buffer_) {
    CudaMemory buffer = make_device_memory(bytes_);
    sink_ = make_device_memory(sizeof(std::uint32_t));
    launch_fill_random_bytes(buffer.get(), bytes_, /*key=*/1, stream_);
    buffer_ = std::move(buffer);
    queue(nullptr);  // writes back the lines that the fill left dirty, and loads the kernel
  }
  launch_read(buffer_.get(), bytes_, static_cast<std::uint32_t*>(sink_.get()), clock, stream_);
}

}  // namespace inferometer
