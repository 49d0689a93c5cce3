#include "harness/run/device_lock.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace inferometer {
namespace {

// Empty where there is no folder for it.
std::string lock_path(std::string device) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return {};
  std::replace_if(
      device.begin(), device.end(), [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; }, '_');
  return folder / ("inferometer-" + device + ".lock");
}

// A file of another user may be opened for reading alone, and never with O_CREAT where the folder is sticky.
int open_lock(const std::string& path) {
  const int existing = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return existing >= 0 ? existing : open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
}

}  // namespace

DeviceLock::DeviceLock(const std::string& device) : file_(open_lock(lock_path(device))) {
  taken_by_another_ = file_.get() >= 0 && flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace inferometer
