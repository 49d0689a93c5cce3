// A file as memory, read only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace inferometer {

class MappedFile {
 public:
  // Throws CheckpointError (io) when the path cannot be opened, or is no regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Reading past what another program has cut off the file meanwhile ends this one with SIGBUS.
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Gives the memory of these bytes back until they are read again.
  void release(std::span<const std::byte> part) const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace inferometer
