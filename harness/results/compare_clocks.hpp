// Whether a difference of two isolated medians may be the clock's rather than the kernel's.
#pragma once

#include <string>

#include "harness/measure/timing.hpp"

namespace inferometer {

// Why the difference says nothing of the kernels; empty where it does, or where there is none. Launches in a row, which
// run without a pause and repeat better at the power limit, are the second witness.
//
// A difference that is, within the threshold, no larger than that between the clocks of the two medians counts only if
// the times in a row differ as well, the same way and past the threshold. What exceeds the clocks, or goes against
// them, needs no witness: a regression beside a change of clocks is found. Any difference at the power limit needs it,
// where there are times in a row: there the clock moves from one sample to the next, and the median is that of the
// clock that was more frequent.
//
// `ratio_low`, `ratio_high`: the interval of the isolated medians' ratio, new over base.
std::string clock_doubt(const Timing& base, const Timing& now, double ratio_low, double ratio_high, double threshold);

}  // namespace inferometer
