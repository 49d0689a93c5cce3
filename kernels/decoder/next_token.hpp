// The next token of each row, from its logits [rows, vocabulary] f16.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "harness/operator/variant.hpp"

namespace inferometer::decoder {

struct NextTokenArgs {
  const __half* logits = nullptr;
  std::int32_t vocabulary = 0;
  std::int32_t rows = 0;
  const std::int32_t* places = nullptr;  // [rows]: where in `next` a row's token goes; negative: nowhere
  std::int32_t* next = nullptr;
};

// The first of the greatest logits.
void launch_greedy(const NextTokenArgs& args, Stream stream);

struct TopPArgs {
  float inverse_temperature = 1;
  double top_p = 1;
  const std::uint64_t* keys = nullptr;      // [rows]: of each sequence's draws
  const std::int32_t* tokens = nullptr;     // [rows]: the token that a row's logits belong to; negative: none
  const std::int32_t* positions = nullptr;  // of tokens: which of a sequence's draws this is
};

// Draws with chance softmax(logits / temperature) from the nucleus: the tokens whose logits are at least c, for the
// greatest c with which they have chance top_p together. Chances are whole numbers, so that sums do not depend on their
// order, and a draw is the same on every GPU.
void launch_top_p(const NextTokenArgs& args, const TopPArgs& top_p, Stream stream);

}  // namespace inferometer::decoder
