// Runs the decode kernels on small caches whose content the test chooses token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/run_variant.hpp"

namespace inferometer::test {

struct DecodeCase {
  std::vector<std::int64_t> contexts;
  std::int64_t q_len = 1;
  std::int64_t q_heads = 4;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 64;
  std::int64_t block_size = 0;  // 0: cuda.contiguous, else cuda.paged
  std::int64_t splits = 0;
  std::string dtype = "f16";
};

std::string describe(const DecodeCase& c);

// Runs the variant that the block size asks for, and checks that it can and that its outputs pass the judge.
VariantRun run_decode(const DecodeCase& c, const EditTensors& edit = {});

TensorSpec& spec_named(std::vector<TensorSpec>& specs, const std::string& name);

// Fills K and V with value(sequence, token, element), `element` counting kv_heads x head_dim, V's from 2^20 on,
// wherever the cache puts that token; and Q with value(sequence, token, element + 2^21), `token` counting q_len. So
// the same sequence means the same numbers in any cache and any batch. Unused slots hold `unused`.
using TokenValue = std::function<float(std::int64_t sequence, std::int64_t token, std::int64_t element)>;
EditTensors fill_tokens(const DecodeCase& c, const TokenValue& value, float unused);

// Between -2 and 2, the same for the same arguments.
float random_value(std::int64_t sequence, std::int64_t token, std::int64_t element);

}  // namespace inferometer::test
