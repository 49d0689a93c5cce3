// What the tests of the block pool share: short ways to ask it, and a memory that counts and refuses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"
#include "tests/support/catch.hpp"

namespace inferometer::test {

using Tokens = std::vector<TokenId>;

// count tokens: first, first + 1, ...
inline Tokens consecutive(TokenId first, std::int64_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

inline std::span<const TokenId> tail(const Tokens& tokens, std::int64_t begin) {
  return std::span(tokens).subspan(static_cast<std::size_t>(begin));
}

// The fault of the BlockPoolError that `action` throws; the test fails where it throws none.
template <class Action>
BlockPoolFault fault_of(const Action& action) {
  try {
    action();
  } catch (const BlockPoolError& error) {
    INFO(error.what());
    return error.fault();
  }
  FAIL("nothing was refused");
  return {};
}

// Fails naming what is broken.
inline void require_sound(const BlockPool& pool) {
  const std::vector<std::string> broken = pool.check_invariants();
  CAPTURE(broken);
  REQUIRE(broken.empty());
}

// Submits the prompt, appends what is not reused and counts it as computed by the next append; returns what is reused.
inline std::int64_t start(BlockPool& pool, SequenceId id, const Tokens& prompt, std::int64_t max_new) {
  const std::int64_t reused = pool.submit(id, prompt, max_new);
  pool.append(id, tail(prompt, reused));
  return reused;
}

// Counts what is allocated and refuses when told to.
class CountingMemory : public std::pmr::memory_resource {
 public:
  std::int64_t bytes = 0;          // allocated now
  std::int64_t allocations = 0;    // ever
  std::int64_t refuse_after = -1;  // so many more are granted; -1: all

 private:
  void* do_allocate(std::size_t size, std::size_t alignment) override {
    if (refuse_after == 0) throw std::bad_alloc();
    if (refuse_after > 0) --refuse_after;
    void* memory = std::pmr::new_delete_resource()->allocate(size, alignment);
    bytes += static_cast<std::int64_t>(size);
    ++allocations;
    return memory;
  }
  void do_deallocate(void* memory, std::size_t size, std::size_t alignment) override {
    bytes -= static_cast<std::int64_t>(size);
    std::pmr::new_delete_resource()->deallocate(memory, size, alignment);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

}  // namespace inferometer::test
