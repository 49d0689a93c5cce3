// Eigen, on the calling thread and without false alarms: g++ 12 takes the undefined operands inside its own AVX-512
// intrinsics for uninitialized variables (GCC bug 105593), wherever Eigen's packets are inlined.
#pragma once

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// Threads are ours to share out; Eigen's wait for each other in busy loops, which stall when a core is taken away.
#define EIGEN_DONT_PARALLELIZE
#include <Eigen/Dense>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
