// Whether other programs that took a processor away made the samples of a launch longer.
#pragma once

#include <span>

#include "harness/measure/timing.hpp"

namespace inferometer {

// `preempted_ns`: those samples of `timing` during which a thread lost its processor. A sample counts if it also took
// longer than the fastest by a tenth: in long launches short system tasks do the former without the latter. A single
// sample has no other beside it: it is held against the launch before it, of `launched_ns` (0: there was none).
// True for more than one sample in twenty.
bool is_interrupted(std::span<const double> preempted_ns, const IsolatedTiming& timing, double launched_ns);

}  // namespace inferometer
