// A time, set beside the work done in it and the ceilings of the device it was done on.
#pragma once

#include <string>

#include "harness/measure/device.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

// The limit is the ceiling whose least time for this work is the longer one (roofline; Williams et al. 2009), and the
// fraction is that least time over the measured one. Without ceilings: rates alone.
Rates rates_of(const Work& work, double ns, const Ceilings& ceilings, bool on_gpu);

// A sentence when `ns` is shorter than physics allows by more than the ceilings' own error, 5 %. A warm cache
// delivers more than the memory's rate, so then only arithmetic bounds the time. Empty: possible.
std::string faster_than_possible(const Work& work, double ns, const Ceilings& ceilings, bool on_gpu, CacheMode cache);

}  // namespace inferometer
