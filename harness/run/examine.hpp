// Measures the harness on this machine's devices, for `doctor` and, in little time, for each run.
#pragma once

#include "harness/results/doctor.hpp"

namespace inferometer {

using CacheCheckOf = CacheCheck (*)(Device&, const CacheCheckEffort&);

// Where its buffers do not fit, the result says so.
CheckedCache checked_cache(Device& device, CacheCheckOf check_of, const CacheCheckEffort& effort);

// Opens the host's processors and the GPU `ordinal` in this process; some seconds each. What cannot be measured says
// why in the result.
Diagnosis examine_machine(int gpu_ordinal);

}  // namespace inferometer
