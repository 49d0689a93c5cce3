#include "harness/run/lines.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace inferometer {

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) close(release());
}

bool LineReader::fill() {
  std::array<char, 65536> chunk{};
  ssize_t count = 0;
  do {
    count = read(fd_, chunk.data(), chunk.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
  buffer_.append(chunk.data(), static_cast<std::size_t>(count));
  return count > 0;
}

std::optional<std::string> LineReader::next() {
  const auto end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  return line;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    ssize_t count = send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == ENOTSOCK) count = write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

}  // namespace inferometer
