// A weight matrix packed for cuda.w4a16 and cuda.w8a16 (packing.hpp), made from the canonical tensors on the device.
#pragma once

#include <memory>

#include "harness/operator/variant.hpp"
#include "kernels/matmul/packing.hpp"
#include "reference/matmul/problem.hpp"

namespace inferometer {

PackedShape packed_shape(const MatmulProblem& p);

// Allocates packed_shape(p).bytes() and enqueues the re-ordering on `stream`. `p.bits` is 4 or 8.
std::shared_ptr<void> pack_weights(const MatmulProblem& p, const MatmulTensors& t, Stream stream, Allocator& allocator);

}  // namespace inferometer
