// Memory that another process can map: a tensor of a row, seen by the harness and by a peer.
#pragma once

#include <cstddef>
#include <string>

#include "harness/run/lines.hpp"

namespace inferometer {

class SharedBlock {
 public:
  explicit SharedBlock(std::size_t bytes);  // zeroed, page-aligned; throws OutOfMemory
  ~SharedBlock();
  SharedBlock(const SharedBlock&) = delete;
  SharedBlock& operator=(const SharedBlock&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  std::string path() const;  // to be opened by processes of the same user, while this one lives

 private:
  FileDescriptor file_;
  std::size_t bytes_;
  void* data_ = nullptr;
};

}  // namespace inferometer
