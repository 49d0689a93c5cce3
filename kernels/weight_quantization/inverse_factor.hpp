// The factor that GPTQ works with, on the device: upper triangular U with H^-1 = U^T U.
#pragma once

#include "harness/operator/variant.hpp"
#include "kernels/weight_quantization/gptq_workspace.hpp"

namespace inferometer {

// memory.h, row-major, only its upper triangle read and written, becomes U; memory.diagonal is its diagonal.
// status->failed: whether a pivot was below k 2^-52 of its diagonal element; the contents are lost then.
//
// H^-1 is never formed. From the last column to the first, in tiles: H_pp = R R^T with an upper triangle R,
//   U_pp = R^-1,  P = H_<p,p U_pp^T (the rest of the factor's column),  H_<p,<p -= P P^T,
// and the same steps, done to the columns behind p, which then hold the identity as changed so far, leave U there:
//   U_p,>p = U_pp B_p,>p,  B_<p,>p -= P U_p,>p,  B_<p,p = -P U_pp.
// 2/3 k^3 operations, in place: Cholesky and inversion of the factor in one pass.
void launch_inverse_factor(const WeightQuantizationProblem& p, const GptqWorkspace& memory, Stream stream);

}  // namespace inferometer
