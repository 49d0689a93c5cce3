// Measures the harness on this machine's devices, for `doctor`.
#pragma once

#include "harness/results/doctor.hpp"

namespace inferometer {

// Opens the host's processors and the GPU `ordinal` in this process; some seconds each. What cannot be measured says
// why in the result.
Diagnosis examine_machine(int gpu_ordinal);

}  // namespace inferometer
