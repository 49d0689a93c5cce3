// A time, set beside the work done in it and the ceilings of the device it was done on.
#pragma once

#include <string>

#include "harness/measure/device.hpp"
#include "harness/results/record.hpp"

namespace inferometer {

// The limit is the ceiling whose least time for this work is the longer one (roofline; Williams et al. 2009), and the
// fraction is that least time over the measured one. A warm cache delivers more than the memory's rate, so then
// arithmetic alone bounds the time. Without a ceiling: rates alone.
Rates rates_of(const Work& work, double ns, const Ceilings& ceilings, bool on_gpu, CacheMode cache);

// A sentence when the rate is above its ceiling by more than that ceiling's own error, 5 % for memory and 10 % for
// arithmetic; else empty.
std::string faster_than_possible(const Rates& rates);

}  // namespace inferometer
