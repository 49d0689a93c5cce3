// A worker process as its supervisor sees it: started, spoken to, waited for, ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "harness/results/json.hpp"
#include "harness/run/lines.hpp"

namespace inferometer {

class WorkerProcess {
 public:
  using Clock = std::chrono::steady_clock;
  using LineCallback = std::function<void(const std::string& line)>;

  // Starts this program again as a worker. `on_output` gets each line the worker prints.
  // Throws std::system_error when no process can be started.
  explicit WorkerProcess(LineCallback on_output);
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  bool send(const Json& message);  // false: it is gone
  void kill();                     // without waiting for its end

  enum class Event { message, gone, timeout, interrupt };
  // Waits until the worker says something, ends, `deadline` passes or `interrupt_fd` is readable. The message is in
  // `message`. What is no message counts as gone: the worker's memory cannot be trusted any more.
  Event wait(Clock::time_point deadline, int interrupt_fd, Json& message);

  // Waits for a process that is gone, ends one that is not, and says how: "killed by SIGSEGV", "ended with exit code
  // 1".
  std::string end();

  std::string last_lines() const;  // that it printed, on one line; known after end()

  bool was_killed_by_system() const { return killed_by_system_; }  // SIGKILL, and not from here; known after end()

 private:
  void read_output();

  pid_t pid_ = -1;
  FileDescriptor socket_;
  FileDescriptor output_;
  LineReader messages_;
  LineReader output_lines_;
  LineCallback on_output_;
  std::deque<std::string> printed_;
  bool killed_by_system_ = false;
};

}  // namespace inferometer
