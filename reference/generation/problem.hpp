// generation: greedy tokens behind random prompts, one after the other: what a KV cache saves. Every variant gives the
// same tokens; they differ in what they compute again for each one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "reference/decoder/problem.hpp"
#include "reference/decoder/seeded_weights.hpp"

namespace inferometer {

struct GenerationProblem {
  std::string model = "tiny";      // a shape (decoder_names); its weights are random
  std::int64_t batch = 1;          // sequences, each with a prompt of its own
  std::int64_t prompt_tokens = 1;  // of each
  std::int64_t new_tokens = 1;     // of each
  std::int64_t weight_bits = 16;   // of the matrices in the layers: 16, 8, 4
  std::int64_t kv_bits = 16;       // of keys and values: 16, 8, 4
  std::int64_t block_size = 16;    // tokens of a block, where a cache is paged
  std::int64_t model_seed = 1;     // of weights and prompts

  bool operator==(const GenerationProblem&) const = default;

  std::int64_t length() const { return prompt_tokens + new_tokens; }
  // Elements of the result; its parts begin at tokens_at() and times_at().
  std::int64_t result_elements() const { return times_at() + 2 * new_tokens; }
  std::int64_t tokens_at() const { return 2; }
  std::int64_t times_at() const { return tokens_at() + batch * new_tokens; }
};

// A time in the result: two integers, ns / 2^30 and ns % 2^30.
inline constexpr std::int64_t kTimeLimb = std::int64_t{1} << 30;

// Dense, last index fastest. The result is
//   [2]                   batch, new_tokens
//   [batch, new_tokens]   the tokens
//   [new_tokens, 2]       the time from the token before (for the first one from the start) to this one, in all
//                         sequences
struct GenerationTensors {
  const std::int32_t* prompts = nullptr;  // [batch, prompt_tokens]
  std::int32_t* result = nullptr;         // [result_elements()]
};

struct Generation {
  static constexpr std::string_view kName = "generation";
  using Problem = GenerationProblem;
  using Tensors = GenerationTensors;
};

}  // namespace inferometer
