#include <utility>

#include "harness/measure/gpu_graph.hpp"

namespace inferometer {
namespace {

bool is_capture_error(cudaError_t code) {
  switch (code) {
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureMerge:
    case cudaErrorStreamCaptureUnmatched:
    case cudaErrorStreamCaptureUnjoined:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
    case cudaErrorStreamCaptureWrongThread: return true;
    default: return false;
  }
}

// Takes the stream out of capture mode, whatever happened within.
std::pair<cudaError_t, CudaGraph> end_capture(Stream stream) {
  cudaGraph_t graph = nullptr;
  const cudaError_t code = cudaStreamEndCapture(stream, &graph);
  if (code != cudaSuccess) cudaGetLastError();  // answered by the caller; later checks must not find it
  return {code, CudaGraph(graph)};
}

}  // namespace

LaunchGraph::LaunchGraph(CudaGraph graph, int launches) : graph_(std::move(graph)), launches_(launches) {
  INFEROMETER_CUDA_CHECK(cudaGraphGetNodes(graph_.get(), nullptr, &nodes_));
}

std::optional<LaunchGraph> LaunchGraph::capture(const Device::Run& run, int sets, int launches, const Launch& launch) {
  // Thread-local: other threads may allocate meanwhile without spoiling the capture.
  INFEROMETER_CUDA_CHECK(cudaStreamBeginCapture(launch.stream, cudaStreamCaptureModeThreadLocal));
  try {
    for (int i = 0; i < launches; ++i) run(i % sets, launch);
  } catch (...) {
    // The launch ran outside a capture before. Where the capture was spoiled, what it threw is the refusal, whether it
    // came from a CUDA call or from a library on top.
    if (is_capture_error(end_capture(launch.stream).first)) return std::nullopt;
    throw;
  }
  auto [code, graph] = end_capture(launch.stream);
  if (is_capture_error(code)) return std::nullopt;
  check_cuda(code, "cudaStreamEndCapture", __FILE__, __LINE__);
  return LaunchGraph(std::move(graph), launches);
}

void LaunchGraph::instantiate(const Launch& launch) {
  cudaGraphExec_t executable = nullptr;
  INFEROMETER_CUDA_CHECK(cudaGraphInstantiate(&executable, graph_.get(), 0));
  executable_.reset(executable);
  INFEROMETER_CUDA_CHECK(cudaGraphUpload(executable, launch.stream));
}

void LaunchGraph::queue(const Launch& launch) const {
  INFEROMETER_CUDA_CHECK(cudaGraphLaunch(executable_.get(), launch.stream));
}

}  // namespace inferometer
