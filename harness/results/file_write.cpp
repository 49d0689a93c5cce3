#include "harness/results/file_write.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace inferometer {
namespace {

[[noreturn]] void fail(int code, const std::string& path) {
  throw std::system_error(code, std::generic_category(), "cannot write " + path);
}

// A new file beside `path`; removed again unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& path) : path_(path), name_(path + ".XXXXXX") {
    fd_ = mkostemp(name_.data(), O_CLOEXEC);
    if (fd_ < 0) fail(errno, path_);
  }
  ~TemporaryFile() {
    close(fd_);
    if (!renamed_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }

  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::write(fd_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(errno, path_);
      text.remove_prefix(static_cast<std::size_t>(count));
    }
  }

  void rename_into_place() {
    const mode_t mask = umask(0);
    umask(mask);
    if (fchmod(fd_, 0666 & ~mask) != 0 || fsync(fd_) != 0) fail(errno, path_);
    if (rename(name_.c_str(), path_.c_str()) != 0) fail(errno, path_);
    renamed_ = true;
    // The new name survives a power cut only once its folder is on the disk. Some file systems cannot flush folders;
    // the file itself is whole either way.
    const std::string folder = std::filesystem::absolute(path_).parent_path();
    if (const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder_fd >= 0) {
      fsync(folder_fd);
      close(folder_fd);
    }
  }

 private:
  std::string path_;
  std::string name_;
  int fd_ = -1;
  bool renamed_ = false;
};

}  // namespace

void write_file_atomically(const std::string& path, std::string_view text) {
  TemporaryFile file(path);
  file.write(text);
  file.rename_into_place();
}

void check_writable(const std::string& path, std::size_t bytes) {
  const TemporaryFile file(path);
  if (const int code = posix_fallocate(file.fd(), 0, static_cast<off_t>(bytes)); code != 0 && code != EOPNOTSUPP)
    fail(code, path);
}

}  // namespace inferometer
