// CUDA calls and launches, checked where they stand.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdio>
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

// For destructors: says what failed on standard error and goes on. Once a context is lost every call returns the same
// code, so only a change of code is worth a line. At the end of the process the driver has freed everything already.
inline void report_cuda(cudaError_t code, const char* call, const char* file, int line) noexcept {
  static std::atomic<cudaError_t> last_reported{cudaSuccess};
  if (code == cudaSuccess || code == cudaErrorCudartUnloading || last_reported.exchange(code) == code) return;
  std::fprintf(stderr, "%s:%d: %s failed: %s (%s)\n", file, line, call, cudaGetErrorName(code),
               cudaGetErrorString(code));
}

}  // namespace inferometer

#define INFEROMETER_CUDA_CHECK(call) ::inferometer::check_cuda((call), #call, __FILE__, __LINE__)
#define INFEROMETER_CUDA_REPORT(call) ::inferometer::report_cuda((call), #call, __FILE__, __LINE__)
