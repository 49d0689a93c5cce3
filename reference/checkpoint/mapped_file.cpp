#include "reference/checkpoint/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "reference/checkpoint/checkpoint_error.hpp"

namespace inferometer {
namespace {

class Descriptor {
 public:
  // Not blocking: opening a pipe would wait for its other end.
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (fd_ < 0) throw_io_error(path, "cannot be opened", errno);
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

MappedFile::MappedFile(const std::string& path) {
  const Descriptor file(path);
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) throw_io_error(path, "cannot be looked at", errno);
  if (!S_ISREG(status.st_mode))
    throw CheckpointError(CheckpointFault::io, path, "", std::nullopt, "is no regular file");
  if (status.st_size == 0) return;  // nothing can be mapped, and nothing needs to be
  size_ = static_cast<std::size_t>(status.st_size);
  void* const address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (address == MAP_FAILED) throw_io_error(path, "cannot be mapped", errno);
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

void MappedFile::release(std::span<const std::byte> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  // Whole pages that hold the part: what a neighbour needs of them is read again.
  const std::uintptr_t into_page = reinterpret_cast<std::uintptr_t>(part.data()) % page;
  auto* const begin = const_cast<std::byte*>(part.data()) - into_page;
  madvise(begin, into_page + part.size(), MADV_DONTNEED);  // advice: nothing depends on it
}

}  // namespace inferometer
