#include "reference/checkpoint/safetensors_writer.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <numeric>

namespace inferometer {
namespace {

// Wide elements first: with data that start at a multiple of 8, every tensor is aligned to its elements.
std::vector<TensorEntry> placed(const std::string& path, const std::vector<TensorPlan>& plans) {
  std::vector<std::size_t> order(plans.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return type_bits(plans[a].type) > type_bits(plans[b].type); });
  std::vector<TensorEntry> tensors;
  tensors.reserve(plans.size());
  std::uint64_t end = 0;
  for (const std::size_t i : order) {
    const TensorPlan& plan = plans[i];
    const std::optional<std::uint64_t> bits = tensor_bits(plan.type, plan.shape);
    const std::uint64_t begin = end;
    if (!bits || __builtin_add_overflow(end, *bits / 8, &end))
      throw CheckpointError(CheckpointFault::shape_overflow, path, plan.name, std::nullopt,
                            "the product of its shape passes 64 bits");
    if (*bits % 8 != 0)
      throw CheckpointError(CheckpointFault::offsets, path, plan.name, std::nullopt,
                            "its bits are no whole number of bytes");
    tensors.push_back({.name = plan.name, .type = plan.type, .shape = plan.shape, .begin = begin, .end = end});
  }
  return tensors;
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::string& path, const std::vector<TensorPlan>& tensors,
                                     const std::map<std::string, std::string>& metadata, Start start)
    : path_(path), partial_(path + ".partial"), tensors_(placed(path, tensors)) {
  index_.reserve(tensors_.size());
  for (std::size_t i = 0; i < tensors_.size(); ++i)
    if (!index_.emplace(tensors_[i].name, i).second)
      throw CheckpointError(CheckpointFault::duplicate, path_, tensors_[i].name, std::nullopt,
                            "the name is given twice");
  const std::string header = safetensors_header_bytes(tensors_, metadata);
  data_start_ = header.size();
  if (data_start_ > kHeaderLengthBytes + kMaxHeaderBytes)
    throw CheckpointError(CheckpointFault::header_length, path_, "", std::nullopt,
                          "the header would have " + std::to_string(data_start_) + " bytes, more than is allowed");
  const int create = start == Start::fresh ? O_CREAT : 0;
  constexpr mode_t kMode = 0666;  // less the umask, as any file
  fd_ = open(partial_.c_str(), O_RDWR | O_CLOEXEC | create, kMode);
  if (fd_ < 0) fail(start == Start::fresh ? "cannot be written" : "cannot be gone on with");
  try {
    lock();
    if (start == Start::fresh) {
      begin(header);
    } else {
      go_on(header);
    }
  } catch (const CheckpointError&) {
    close(fd_);
    throw;
  }
}

SafetensorsWriter::~SafetensorsWriter() {
  if (!finished_ && !kept_) unlink(partial_.c_str());
  close(fd_);
}

void SafetensorsWriter::lock() const {
  if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK)
    throw CheckpointError(CheckpointFault::io, partial_, "", std::nullopt, "another program is writing it");
  fail("cannot be locked");
}

void SafetensorsWriter::begin(const std::string& header) {
  const std::uint64_t size = data_start_ + (tensors_.empty() ? 0 : tensors_.back().end);
  const auto refuse = [&](const std::string& what_failed) {
    const int code = errno;
    unlink(partial_.c_str());
    throw_io_error(partial_, what_failed, code);
  };
  if (ftruncate(fd_, 0) != 0) refuse("cannot be emptied");
  // Some file systems cannot reserve; there a full disk shows when it is reached.
  const int code = posix_fallocate(fd_, 0, static_cast<off_t>(size));
  if (code != 0 && code != EOPNOTSUPP) {
    errno = code;
    refuse("has no room for " + std::to_string(size) + " bytes");
  }
  if (ftruncate(fd_, static_cast<off_t>(size)) != 0) refuse("cannot be made " + std::to_string(size) + " bytes long");
  put(bytes_of(header), 0);
}

void SafetensorsWriter::go_on(const std::string& header) const {
  struct stat status {};
  if (fstat(fd_, &status) != 0) fail("cannot be looked at");
  std::string there(header.size(), '\0');
  const std::uint64_t size = data_start_ + (tensors_.empty() ? 0 : tensors_.back().end);
  const ssize_t count = pread(fd_, there.data(), there.size(), 0);
  if (count < 0) fail("cannot be read");
  if (static_cast<std::uint64_t>(status.st_size) != size || there != header)
    throw CheckpointError(CheckpointFault::content, partial_, "", std::nullopt,
                          "was begun with other tensors than those asked for now");
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> data) {
  const TensorEntry& place = entry(name);
  if (data.size() != place.end - place.begin)
    throw CheckpointError(
        CheckpointFault::content, path_, place.name, std::nullopt,
        "takes " + std::to_string(place.end - place.begin) + " bytes, got " + std::to_string(data.size()));
  put(data, data_start_ + place.begin);
  written_.insert(place.name);
}

void SafetensorsWriter::assume_written(std::string_view name) { written_.insert(entry(name).name); }

void SafetensorsWriter::flush() {
  if (fdatasync(fd_) != 0) fail("cannot be flushed");
}

void SafetensorsWriter::finish() {
  for (const TensorEntry& tensor : tensors_)
    if (tensor.begin != tensor.end && !written_.contains(tensor.name))
      throw CheckpointError(CheckpointFault::missing, path_, tensor.name, std::nullopt, "has not been written");
  if (fsync(fd_) != 0) fail("cannot be flushed");
  if (rename(partial_.c_str(), path_.c_str()) != 0) fail("cannot be renamed to " + path_);
  finished_ = true;
  // The new name survives a power cut once its folder is on the disk; some file systems cannot flush folders.
  const std::string folder = std::filesystem::absolute(path_).parent_path();
  if (const int folder_fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder_fd >= 0) {
    fsync(folder_fd);
    close(folder_fd);
  }
}

const TensorEntry& SafetensorsWriter::entry(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end())
    throw CheckpointError(CheckpointFault::missing, path_, std::string(name), std::nullopt,
                          "is not among the tensors that the header names");
  return tensors_[found->second];
}

void SafetensorsWriter::fail(const std::string& what_failed) const { throw_io_error(partial_, what_failed, errno); }

void SafetensorsWriter::put(std::span<const std::byte> bytes, std::uint64_t at) const {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(at));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    at += static_cast<std::uint64_t>(count);
  }
}

}  // namespace inferometer
