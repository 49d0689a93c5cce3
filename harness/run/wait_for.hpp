// The end of a child process.
#pragma once

#include <sys/wait.h>

#include <chrono>
#include <optional>
#include <thread>

namespace inferometer {

// The status, or none when the process does not end within `time`.
inline std::optional<int> wait_for(pid_t pid, std::chrono::nanoseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  while (true) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) return status;
    if (std::chrono::steady_clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace inferometer
