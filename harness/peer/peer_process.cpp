#include "harness/peer/peer_process.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "harness/run/wait_for.hpp"

namespace inferometer {
namespace {

constexpr int kNotFound = 127;                    // as a shell's
constexpr std::size_t kLongestLine = 64U << 20U;  // of what should be a message
constexpr std::chrono::seconds kGrace{2};

// The library that an adapter loads to be timed by our clock lies beside this program.
std::string sampler_path() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libinferometer_sampler.so").string();
}

// In the child, between fork and exec: calls that are safe there, and no others.
[[noreturn]] void become_peer(pid_t parent, int socket, const char* folder, char* const* words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);
  for (const int stop : {SIGINT, SIGTERM}) signal(stop, SIG_IGN);  // they reach the whole group; the supervisor decides
  if (dup2(socket, STDIN_FILENO) < 0 || dup2(socket, STDOUT_FILENO) < 0 || chdir(folder) != 0) _exit(EXIT_FAILURE);
  execvp(words[0], words);
  // EACCES: it is there and no program, or a folder on PATH may not be looked into; then it is in none of the others.
  _exit(errno == ENOENT || errno == EACCES ? kNotFound : EXIT_FAILURE);
}

}  // namespace

PeerProcess::PeerProcess(const PeerManifest& manifest) : name_(manifest.name), lines_(-1) {
  std::array<int, 2> pair{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  socket_ = FileDescriptor(pair[0]);
  const FileDescriptor other_end(pair[1]);
  lines_ = LineReader(socket_.get());
  setenv("INFEROMETER_SAMPLER", sampler_path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no other thread reads it
  std::vector<std::string> words = manifest.command;
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) become_peer(parent, other_end.get(), manifest.folder.c_str(), pointers.data());
}

PeerProcess::~PeerProcess() {
  if (!gone()) end();
}

std::string PeerProcess::end() {
  socket_.reset();
  std::optional<int> status = wait_for(pid_, kGrace);
  if (!status) {
    kill(pid_, SIGKILL);
    status = wait_for(pid_, kGrace);
  }
  pid_ = -1;
  if (!status) return "did not end when killed";
  if (WIFSIGNALED(*status)) return std::string("was killed by signal ") + std::to_string(WTERMSIG(*status));
  not_found_ = WEXITSTATUS(*status) == kNotFound;
  return "ended with exit code " + std::to_string(WEXITSTATUS(*status));
}

Json PeerProcess::read() {
  if (gone()) throw PeerError("peer " + name_ + " is gone");
  while (true) {
    while (const auto line = lines_.next()) {
      Json message = Json::parse(*line, nullptr, /*allow_exceptions=*/false);
      if (message.is_object() && message.contains("type") && message.at("type").is_string()) return message;
      std::fprintf(stderr, "%s\n", line->c_str());  // printed by a library under the adapter
    }
    if (lines_.rest().size() <= kLongestLine && lines_.fill()) continue;
    throw PeerError("peer " + name_ + " " + end());
  }
}

void PeerProcess::send(const Json& message) {
  if (gone()) throw PeerError("peer " + name_ + " is gone");
  if (!write_all(socket_.get(), to_line(message) + "\n")) throw PeerError("peer " + name_ + " " + end());
}

}  // namespace inferometer
