#include "harness/peer/shared_block.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "harness/measure/device.hpp"
#include "harness/measure/host_memory.hpp"

namespace inferometer {

// An anonymous file: unlike those in /dev/shm it has no name to clash, needs no room there, and goes with its process.
SharedBlock::SharedBlock(std::size_t bytes)
    : file_(memfd_create("inferometer_tensor", MFD_CLOEXEC)), bytes_(std::max<std::size_t>(bytes, 1)) {
  const bool sized = file_.get() >= 0 && ftruncate(file_.get(), static_cast<off_t>(bytes_)) == 0;
  if (sized) data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (!sized || data_ == MAP_FAILED) throw OutOfMemory("memory shared with a peer", bytes_, available_host_bytes());
}

SharedBlock::~SharedBlock() { munmap(data_, bytes_); }

std::string SharedBlock::path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(file_.get());
}

}  // namespace inferometer
