// What a contiguous KV cache refuses, as a type to tell faults apart and a sentence to read.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace inferometer {

enum class KvCacheFault : std::uint8_t {
  unknown_layer,
  wrong_size,  // keys or values that are no whole number of tokens, or not as many of each; an impossible count
  full,        // no room for the tokens: past the capacity
  never_fits,  // more than the whole memory, or the longest sequence, holds
  not_owned,   // a range released twice, or never reserved
};

// Whoever throws it has changed nothing.
class KvCacheError : public std::runtime_error {
 public:
  KvCacheError(KvCacheFault fault, const std::string& sentence) : std::runtime_error(sentence), fault_(fault) {}
  KvCacheFault fault() const { return fault_; }

 private:
  KvCacheFault fault_;
};

}  // namespace inferometer
