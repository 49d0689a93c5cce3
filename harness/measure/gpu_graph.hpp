// Many launches as one CUDA graph, so that the host's cost of launching is paid once. CUDA builds only.
#pragma once

#include <optional>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_handles.hpp"

namespace inferometer {

class LaunchGraph {
 public:
  // Captures `launches` launches that rotate over `sets`. Nothing when a launch cannot be captured (it allocates, it
  // synchronises, it uses another stream's work); other errors are thrown.
  static std::optional<LaunchGraph> capture(const Device::Run& run, int sets, int launches, const Launch& launch);

  int launches() const { return launches_; }
  std::size_t nodes() const { return nodes_; }  // kernels, copies, sets

  void instantiate(const Launch& launch);  // once, before queue
  void queue(const Launch& launch) const;

 private:
  LaunchGraph(CudaGraph graph, int launches);

  CudaGraph graph_;
  CudaGraphExec executable_;
  std::size_t nodes_ = 0;
  int launches_;
};

}  // namespace inferometer
