// Time since construction, by the steady clock.
#pragma once

#include <chrono>

namespace inferometer {

class Stopwatch {
 public:
  double ns() const { return std::chrono::duration<double, std::nano>(Clock::now() - start_).count(); }
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace inferometer
