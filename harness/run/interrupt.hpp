// Ctrl-C and SIGTERM as something to poll for. The first signal is noted; the next one ends the program at once.
#pragma once

#include <exception>

namespace inferometer {

// At most one at a time. Restores the earlier handlers.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool requested() const;
  int fd() const;  // readable from the first signal on
};

class Interrupted : public std::exception {
 public:
  const char* what() const noexcept override { return "interrupted"; }
};

}  // namespace inferometer
