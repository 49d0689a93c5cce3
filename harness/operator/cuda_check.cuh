// CUDA calls and launches, checked where they stand.
#pragma once

#include <cuda_runtime_api.h>

#include <stdexcept>
#include <string>

namespace inferometer {

class CudaError : public std::runtime_error {
 public:
  CudaError(const std::string& message, cudaError_t code) : std::runtime_error(message), code_(code) {}
  cudaError_t code() const { return code_; }

 private:
  cudaError_t code_;
};

inline void check_cuda(cudaError_t code, const char* call, const char* file, int line) {
  if (code == cudaSuccess) return;
  throw CudaError(std::string(file) + ":" + std::to_string(line) + ": " + call + " failed: " + cudaGetErrorName(code) +
                      " (" + cudaGetErrorString(code) + ")",
                  code);
}

}  // namespace inferometer

#define INFEROMETER_CUDA_CHECK(call) ::inferometer::check_cuda((call), #call, __FILE__, __LINE__)
