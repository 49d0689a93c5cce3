// A decoder on the CPU for small shapes, in f32, over a cache of blocks that its caller shares out. It computes token
// by token, each as if it were alone: no batch, chunk or neighbour changes a bit of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reference/decoder/problem.hpp"

namespace inferometer {

struct PagedDecoderConfig {
  std::int64_t weight_bits = 16;  // of the matrices in the layers; 16, 8, 4
  std::int64_t kv_bits = 16;      // of keys and values; 16, 8, 4
  std::int64_t block_size = 16;   // tokens
  std::int64_t num_blocks = 1;
};

class PagedDecoder {
 public:
  PagedDecoder(const DecoderWeights& weights, const PagedDecoderConfig& config);
  ~PagedDecoder();
  PagedDecoder(const PagedDecoder&) = delete;
  PagedDecoder& operator=(const PagedDecoder&) = delete;

  // Computes tokens position, position + 1, ... of a sequence whose token t is kept in block table[t / block_size].
  // Returns the greedy next token behind the last one, the first among equals. Sequences may run side by side.
  std::int32_t step(std::span<const std::int32_t> tokens, std::int64_t position, std::span<const std::int32_t> table);

  void copy_block(std::int32_t source, std::int32_t destination);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inferometer
