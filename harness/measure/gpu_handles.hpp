// CUDA objects that free themselves. CUDA builds only.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <type_traits>

#include "harness/operator/cuda_check.cuh"

namespace inferometer {

struct CudaDelete {
  void operator()(cudaEvent_t event) const noexcept { INFEROMETER_CUDA_REPORT(cudaEventDestroy(event)); }
  void operator()(cudaStream_t stream) const noexcept { INFEROMETER_CUDA_REPORT(cudaStreamDestroy(stream)); }
  void operator()(cudaGraph_t graph) const noexcept { INFEROMETER_CUDA_REPORT(cudaGraphDestroy(graph)); }
  void operator()(cudaGraphExec_t graph) const noexcept { INFEROMETER_CUDA_REPORT(cudaGraphExecDestroy(graph)); }
  void operator()(void* memory) const noexcept { INFEROMETER_CUDA_REPORT(cudaFree(memory)); }
};

template <class Handle>
using CudaUnique = std::unique_ptr<std::remove_pointer_t<Handle>, CudaDelete>;

using CudaEvent = CudaUnique<cudaEvent_t>;
using CudaStream = CudaUnique<cudaStream_t>;
using CudaGraph = CudaUnique<cudaGraph_t>;
using CudaGraphExec = CudaUnique<cudaGraphExec_t>;
using CudaMemory = std::unique_ptr<void, CudaDelete>;

CudaEvent make_event();

// Memory of the harness itself, outside any row's ledger. Throws OutOfMemory with the bytes asked for and free.
CudaMemory make_device_memory(std::size_t bytes);

std::size_t free_device_bytes();  // of the calling thread's GPU

double elapsed_ns(const CudaEvent& start, const CudaEvent& stop);  // both reached

}  // namespace inferometer
