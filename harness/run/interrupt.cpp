#include "harness/run/interrupt.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>

namespace inferometer {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};

// A handler has no argument of ours: it finds the one guard here.
std::atomic<int> event_fd{-1};
std::atomic<bool> signalled{false};
std::array<struct sigaction, kSignals.size()> earlier{};

void note_signal(int /*signal*/) {
  const int saved = errno;
  signalled = true;
  const std::uint64_t one = 1;
  // An eventfd refuses a write only when its counter is full, and then it is readable already.
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof one);
  errno = saved;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  signalled = false;
  event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (event_fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  struct sigaction action {};
  action.sa_handler = &note_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &action, &earlier[i]);
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &earlier[i], nullptr);
  close(event_fd.exchange(-1));
}

bool InterruptGuard::requested() const { return signalled; }

int InterruptGuard::fd() const { return event_fd; }

}  // namespace inferometer
