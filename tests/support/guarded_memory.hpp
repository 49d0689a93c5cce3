// Device memory with guards on both sides of every allocation, to catch kernels that write past their tensors.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "harness/measure/device.hpp"

namespace inferometer::test {

// The guards hold NaN in every float type, so that a read past an end that reaches arithmetic shows in the result.
class GuardedMemory : public Allocator {
 public:
  explicit GuardedMemory(Device& device) : device_(device) {}  // the device outlives this and all allocations

  // 256-byte aligned; the guard behind starts at the very next byte. Throws OutOfMemory.
  std::shared_ptr<void> allocate(std::size_t bytes, std::string_view name) override;

  // A sentence for each guard of a living allocation that no longer holds what it was filled with. Synchronizes.
  std::vector<std::string> violations();

 private:
  struct Block {
    std::string name;
    std::weak_ptr<void> memory;
    const std::byte* begin;
    std::size_t bytes;
  };
  Device& device_;
  std::vector<Block> blocks_;
};

}  // namespace inferometer::test
