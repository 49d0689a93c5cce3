// Lines of text through pipes and sockets, without ever blocking on half a line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferometer {

// Closes its file descriptor.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_ = -1;
};

class LineReader {
 public:
  explicit LineReader(int fd) : fd_(fd) {}

  // One read of what is there; blocks when nothing is and the descriptor blocks. False at the end or on an error.
  bool fill();
  std::optional<std::string> next();                   // a whole line, without its end
  const std::string& rest() const { return buffer_; }  // what came after the last line end

 private:
  int fd_;
  std::string buffer_;
};

// Writes all of `text`. False, with errno set, when the other end is gone or the disk is full. Raises no SIGPIPE on
// sockets.
bool write_all(int fd, std::string_view text);

}  // namespace inferometer
