// A time limit for what another process does, kept by a process that may itself be stopped (Ctrl-Z) and continued.
#pragma once

#include <algorithm>
#include <chrono>

namespace inferometer {

// Its keeper looks at the clock at least once a tick. Where more time has gone by, the keeper stood still, most likely
// together with the process it waits for: the excess does not count.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kTick{500};

  Deadline(Clock::time_point now, std::chrono::nanoseconds length) : end_(now + length), seen_(now) {}

  Clock::time_point next_look() const { return std::min(end_, seen_ + kTick); }

  void look(Clock::time_point now) {
    end_ += std::max<Clock::duration>(now - seen_ - kTick, Clock::duration::zero());
    seen_ = now;
  }

  bool passed() const { return seen_ >= end_; }

 private:
  Clock::time_point end_;
  Clock::time_point seen_;  // at the latest look
};

}  // namespace inferometer
