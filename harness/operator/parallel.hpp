// Loops over threads whose bodies may throw. An exception that leaves an OpenMP region ends the process; here it
// reaches the caller.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>

namespace inferometer {

// The first exception thrown by any of several threads.
class FirstException {
 public:
  // For a catch block.
  void keep() noexcept {
    const std::lock_guard lock(mutex_);
    if (!exception_) exception_ = std::current_exception();
    kept_.store(true, std::memory_order_relaxed);
  }
  bool kept() const noexcept { return kept_.load(std::memory_order_relaxed); }
  // After the threads have joined.
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr exception_;
  std::atomic<bool> kept_ = false;
};

// body(i) for i in [0, count), handed out one at a time to at most `threads` threads, and to no more than have one: a
// thread woken for nothing costs microseconds. After an exception no further body begins; the first one is rethrown
// once all threads are done.
template <class Body>
void parallel_for(std::int64_t count, int threads, const Body& body) {
  FirstException failure;
  const int team = static_cast<int>(std::clamp<std::int64_t>(count, 1, std::max(threads, 1)));
#pragma omp parallel for num_threads(team) schedule(dynamic)
  for (std::int64_t i = 0; i < count; ++i) {
    if (failure.kept()) continue;
    try {
      body(i);
    } catch (...) {
      failure.keep();
    }
  }
  failure.rethrow();
}

}  // namespace inferometer
