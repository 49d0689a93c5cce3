#include "kernels/decoder/chain_turn.hpp"

#include <cuda_runtime_api.h>

#include <map>
#include <stdexcept>

#include "harness/operator/cuda_check.cuh"

namespace inferometer::decoder {

struct ChainTurn::Device {
  std::mutex mutex;
  cudaEvent_t reached = nullptr;  // the end of the last turn's work
  Stream last = nullptr;          // and its stream
};

// Never freed: at the end of the program the driver may be gone first.
ChainTurn::Device& ChainTurn::current_device() {
  static std::mutex mutex;
  static auto* const devices = new std::map<int, Device>;
  int number = 0;
  INFEROMETER_CUDA_CHECK(cudaGetDevice(&number));
  const std::lock_guard lock(mutex);
  Device& device = (*devices)[number];
  if (device.reached == nullptr)
    INFEROMETER_CUDA_CHECK(cudaEventCreateWithFlags(&device.reached, cudaEventDisableTiming));
  return device;
}

// A stream's own work is in order. A new stream may have the handle of one that is gone: whoever takes turns waits for
// the stream before it goes (~CudaDecoder).
ChainTurn::ChainTurn(Stream stream) : device_(current_device()), lock_(device_.mutex), stream_(stream) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  INFEROMETER_CUDA_CHECK(cudaStreamIsCapturing(stream, &capture));
  if (capture != cudaStreamCaptureStatusNone)
    throw std::logic_error("ChainTurn: the stream is being captured; take the turn of the stream the graph runs on");
  if (device_.last != stream) INFEROMETER_CUDA_CHECK(cudaStreamWaitEvent(stream, device_.reached, 0));
}

ChainTurn::~ChainTurn() {
  INFEROMETER_CUDA_REPORT(cudaEventRecord(device_.reached, stream_));
  device_.last = stream_;
}

}  // namespace inferometer::decoder
