// The factor that GPTQ works with: upper triangular U with H^-1 = U^T U.
#pragma once

#include <cstdint>
#include <vector>

namespace inferometer {

// `matrix` [k, k], symmetric, comes with its rows and columns in reverse order (only its lower triangle is read) and
// becomes U in forward order, 0 below the diagonal. False, with the contents lost, where the matrix is not positive
// definite to working precision: a pivot below k 2^-52 of its diagonal element.
//
// H^-1 is never formed. With J the reversal, J H J = L L^T gives H = (J L J)(J L J)^T, an upper triangle times its
// transpose, so U = (J L J)^-1 = J L^-1 J: one factorisation and one triangular inverse, 2/3 k^3 operations, half of
// what inverting H and factorising the inverse takes, and without squaring the condition number on the way.
// Same bits for any number of threads.
bool invert_to_upper_factor(std::int64_t k, std::vector<double>& matrix, int threads);

}  // namespace inferometer
