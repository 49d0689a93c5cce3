// How fast queued work can go. CUDA builds only.
#pragma once

#include <functional>

#include "harness/operator/variant.hpp"

namespace inferometer {

// Seconds of the fastest of `passes` passes of queued work, back to back, by events; one more before them is not timed.
double fastest_pass_seconds(const std::function<void()>& queue_pass, int passes, Stream stream);

}  // namespace inferometer
