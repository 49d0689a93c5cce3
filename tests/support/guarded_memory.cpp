#include "tests/support/guarded_memory.hpp"

#include <array>

namespace inferometer::test {
namespace {

constexpr std::size_t kGuardBytes = 4096;  // a multiple of 256; more than one row of any tile

// 0x7ff5: a NaN as f16, as bf16 and, doubled, as f32; not the NaN 0x7fff that GPUs compute.
constexpr std::array<std::byte, kGuardBytes> kGuard = [] {
  std::array<std::byte, kGuardBytes> guard{};
  for (std::size_t i = 0; i < guard.size(); ++i) guard[i] = i % 2 == 0 ? std::byte{0xf5} : std::byte{0x7f};
  return guard;
}();

std::size_t changed_bytes(Device& device, const std::byte* guard) {
  std::array<std::byte, kGuardBytes> found{};
  device.copy_to_host(found.data(), guard, found.size());
  std::size_t changed = 0;
  for (std::size_t i = 0; i < kGuardBytes; ++i) changed += found[i] != kGuard[i] ? 1 : 0;
  return changed;
}

}  // namespace

std::shared_ptr<void> GuardedMemory::allocate(std::size_t bytes, std::string_view name) {
  Device& device = device_;
  const std::shared_ptr<void> whole(device.allocate(bytes + 2 * kGuardBytes),
                                    [&device](void* memory) { device.release(memory); });
  std::byte* begin = static_cast<std::byte*>(whole.get()) + kGuardBytes;
  device.copy_from_host(begin - kGuardBytes, kGuard.data(), kGuardBytes);
  device.copy_from_host(begin + bytes, kGuard.data(), kGuardBytes);
  blocks_.push_back({.name = std::string(name), .memory = whole, .begin = begin, .bytes = bytes});
  return {whole, begin};  // owns the whole, points past the first guard
}

std::vector<std::string> GuardedMemory::violations() {
  device_.synchronize();
  std::vector<std::string> sentences;
  for (const Block& block : blocks_) {
    if (block.memory.expired()) continue;
    const std::size_t before = changed_bytes(device_, block.begin - kGuardBytes);
    const std::size_t behind = changed_bytes(device_, block.begin + block.bytes);
    if (before != 0) sentences.push_back(std::to_string(before) + " bytes were written in front of " + block.name);
    if (behind != 0) sentences.push_back(std::to_string(behind) + " bytes were written behind " + block.name);
  }
  return sentences;
}

}  // namespace inferometer::test
