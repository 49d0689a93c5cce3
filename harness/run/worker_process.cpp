#include "harness/run/worker_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>
#include <thread>

#include "harness/run/wait_for.hpp"

namespace inferometer {
namespace {

constexpr std::size_t kLastLines = 8;
constexpr std::chrono::seconds kGrace{10};  // a killed process is gone by then, unless a driver holds it

[[noreturn]] void throw_errno(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

// In the child, between fork and exec: calls that are safe there, and no others.
[[noreturn]] void become_worker(pid_t supervisor, int socket, int output, const char* socket_text) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != supervisor) _exit(EXIT_FAILURE);                // it died before the line above
  for (const int stop : {SIGINT, SIGTERM}) signal(stop, SIG_IGN);  // they reach the whole group; the supervisor decides
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  dup2(null, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);  // standard output belongs to the result table
  dup2(output, STDERR_FILENO);
  fcntl(socket, F_SETFD, 0);
  execl("/proc/self/exe", "inferometer", "worker", socket_text, static_cast<char*>(nullptr));
  _exit(EXIT_FAILURE);
}

std::string describe_end(int status) {
  if (WIFEXITED(status)) return "ended with exit code " + std::to_string(WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  return "killed by " + (name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(status)));
}

}  // namespace

WorkerProcess::WorkerProcess(LineCallback on_output)
    : messages_(-1), output_lines_(-1), on_output_(std::move(on_output)) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) throw_errno("socketpair");
  socket_ = FileDescriptor(pair[0]);
  const FileDescriptor workers_socket(pair[1]);
  if (pipe2(pair.data(), O_CLOEXEC) != 0) throw_errno("pipe");
  output_ = FileDescriptor(pair[0]);
  const FileDescriptor workers_output(pair[1]);
  fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  const std::string socket_text = std::to_string(workers_socket.get());
  const pid_t supervisor = getpid();
  pid_ = fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) become_worker(supervisor, workers_socket.get(), workers_output.get(), socket_text.c_str());
  messages_ = LineReader(socket_.get());
  output_lines_ = LineReader(output_.get());
}

WorkerProcess::~WorkerProcess() {
  if (pid_ < 0) return;
  kill();
  wait_for(pid_, kGrace);
}

void WorkerProcess::kill() {
  if (pid_ >= 0) ::kill(pid_, SIGKILL);
}

bool WorkerProcess::send(const Json& message) { return write_all(socket_.get(), to_line(message) + "\n"); }

void WorkerProcess::read_output() {
  bool more = output_lines_.fill();
  while (const auto line = output_lines_.next()) {
    printed_.push_back(*line);
    if (printed_.size() > kLastLines) printed_.pop_front();
    on_output_(*line);
  }
  if (!more) output_.reset();
}

WorkerProcess::Event WorkerProcess::wait(Clock::time_point deadline, int interrupt_fd, Json& message) {
  while (true) {
    if (const auto line = messages_.next()) {
      message = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
      return message.is_object() && message.contains("type") ? Event::message : Event::gone;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return Event::timeout;
    std::array<pollfd, 3> files{
        {{socket_.get(), POLLIN, 0}, {interrupt_fd, POLLIN, 0}, {output_.get(), POLLIN, 0}}};  // -1 is left out
    constexpr std::int64_t kLongestPoll = 1 << 30;
    if (poll(files.data(), files.size(), static_cast<int>(std::min<std::int64_t>(left, kLongestPoll))) < 0) {
      if (errno == EINTR) continue;
      throw_errno("poll");
    }
    if (files[2].revents != 0) read_output();
    if (files[1].revents != 0) return Event::interrupt;
    if (files[0].revents != 0 && !messages_.fill()) return Event::gone;
  }
}

std::string WorkerProcess::end() {
  // A process that ended by itself is about to be reaped: its last breath may take a moment (a core dump).
  socket_.reset();
  int status = 0;
  const auto deadline = Clock::now() + std::chrono::seconds(1);
  bool reaped = false;
  while (!reaped && Clock::now() < deadline) {
    reaped = waitpid(pid_, &status, WNOHANG) == pid_;
    if (!reaped) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::string how = "did not end when killed";
  if (reaped) {
    how = describe_end(status);
    killed_by_system_ = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  } else {
    kill();
    if (const auto killed = wait_for(pid_, kGrace)) how = describe_end(*killed);
  }
  pid_ = -1;
  if (output_.get() >= 0) read_output();
  return how;
}

std::string WorkerProcess::last_lines() const {
  std::string text;
  for (const std::string& line : printed_) text += (text.empty() ? "" : " | ") + line;
  return text;
}

}  // namespace inferometer
