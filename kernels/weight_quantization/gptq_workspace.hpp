// What a launch of cuda.gptq keeps on the device between its kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/weight_quantization/problem.hpp"

namespace inferometer {

inline constexpr int kFactorTile = 64;               // rows and columns of H that one block of threads factorises
inline constexpr int kBlockColumns = 64;             // of W, whose updates reach the ones behind them in one product
inline constexpr std::int64_t kTokensAtOnce = 2048;  // of calibration, as doubles

// One for the whole launch, in device memory.
struct GptqStatus {
  double mean;               // of the diagonal of H over live inputs; 0 without any
  std::int32_t live_inputs;  // inputs that are not always 0
  std::int32_t failed;       // whether a pivot was too small
  std::uint64_t begun;       // ns of the device's clock
  std::uint64_t calibrated;
};

struct GptqWorkspace {
  std::span<std::byte> cublas;
  GptqStatus* status = nullptr;
  double* h = nullptr;            // [k, k]  upper triangle: H = X^T X / tokens, then U with H^-1 = U^T U
  double* w = nullptr;            // [n, k]  weights as updated so far
  double* tokens = nullptr;       // [kTokensAtOnce, k]
  double* panel = nullptr;        // [k, kFactorTile]
  double* diagonal = nullptr;     // [k]     of H, damped
  std::uint8_t* live = nullptr;   // [k]
  double* errors = nullptr;       // [n, kBlockColumns]
  double* row_squares = nullptr;  // [n]     sum of e_i^2
  double* row_changes = nullptr;  // [n]     sum of squared changes of weights, live inputs alone
};

std::size_t gptq_workspace_bytes(const WeightQuantizationProblem& p);
GptqWorkspace place_gptq_workspace(const WeightQuantizationProblem& p, std::span<std::byte> memory);

}  // namespace inferometer
