// The rate of the vendor's matrix product, as a ceiling. CUDA builds only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "harness/measure/gpu_handles.hpp"
#include "harness/operator/variant.hpp"

namespace inferometer {

enum class MatmulKind : std::uint8_t {
  f16,   // f16 in and out, f32 accumulation
  int8,  // int8 in, int32 out
};

// C = A^T B with square operands of edge `n` from `operands`, which holds two n x n matrices of the kind's input type.
// Seconds of the fastest pass; absent when cuBLASLt has no algorithm for it here.
std::optional<double> fastest_matmul_seconds(MatmulKind kind, int n, const void* operands, Stream stream);

// Seconds of the fastest of several passes of queued work, by events; the first pass is a warm-up.
double fastest_pass_seconds(const std::function<void()>& queue_pass, Stream stream);

}  // namespace inferometer
