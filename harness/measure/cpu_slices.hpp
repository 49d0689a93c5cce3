// The part of a buffer that one thread of a team touches.
#pragma once

#include <cstddef>
#include <span>

namespace inferometer {

// Whole pages, so that each lies with the thread that touched it first.
template <class Byte>
std::span<Byte> thread_slice(std::span<Byte> all, int thread, int threads) {
  constexpr std::size_t kPageBytes = 4096;
  const std::size_t pages = all.size() / kPageBytes;
  const auto page = [&](int i) { return pages * static_cast<std::size_t>(i) / static_cast<std::size_t>(threads); };
  const std::size_t begin = page(thread) * kPageBytes;
  const std::size_t end = thread + 1 == threads ? all.size() : page(thread + 1) * kPageBytes;
  return all.subspan(begin, end - begin);
}

}  // namespace inferometer
