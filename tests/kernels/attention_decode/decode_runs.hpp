// Runs the decode kernels on small caches whose content the test chooses token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/decode_shape.hpp"
#include "tests/support/run_variant.hpp"

namespace inferometer::test {

std::string describe(const DecodeShape& c);

// Runs the variant that the block size asks for, cuda.contiguous or cuda.paged, and checks that it can and that its
// outputs pass the judge.
VariantRun run_decode(const DecodeShape& c, const EditTensors& edit = {});

// The problem with a cache of int8, FP8 and int4 codes in turn; and with one of 16 bits before them.
std::vector<DecodeShape> in_every_code(DecodeShape c);
std::vector<DecodeShape> in_every_format(const DecodeShape& c);
// The same with each group size that divides the head.
std::vector<DecodeShape> in_every_code_and_group(const DecodeShape& c);

// Elements count kv_heads x what one head of one token has. Those of K begin at 0.
using TokenValue = std::function<float(std::int64_t sequence, std::int64_t token, std::int64_t element)>;
inline constexpr std::int64_t kValueElements = std::int64_t{1} << 20;  // V's first
inline constexpr std::int64_t kQueryElements = std::int64_t{1} << 21;  // Q's first; its tokens count q_len

inline bool is_key(std::int64_t element) { return element < kValueElements; }
inline bool is_query(std::int64_t element) { return element >= kQueryElements; }

// What Q and the cache hold.
struct TokenContents {
  TokenValue value;  // an element of Q, and of K and V of 16 bits
  TokenValue code;   // a byte of K and V in codes
  TokenValue scale;  // one scale of a group of K or V
  float unused = 0;  // elements and scales of slots without a token, and what pads rows
  float unused_code = 0;
};

// Elements of root mean square 1 or so, the same for the same sequence, token and element.
TokenContents random_contents(const DecodeShape& c);

// Fills Q, K, V and the scales with `contents`, wherever the cache puts a token: the same sequence means the same
// numbers in any cache and any batch.
EditTensors fill_tokens(const DecodeShape& c, const TokenContents& contents);
EditTensors fill_tokens(const DecodeShape& c, const TokenValue& value, float unused);  // else random

// Between -2 and 2, the same for the same arguments; of 11 bits, so that f16 holds it.
float random_value(std::int64_t sequence, std::int64_t token, std::int64_t element);

// The number that element d of a row stands for, whose bytes byte_at(j) gives.
float code_value(const DecodeShape& c, const std::function<float(std::int64_t)>& byte_at, std::int64_t d);

}  // namespace inferometer::test
