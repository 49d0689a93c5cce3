// Decode problems for tests, written down by what differs from a plain one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "harness/operator/fields.hpp"
#include "tests/support/tensor_named.hpp"

namespace inferometer::test {

struct DecodeShape {
  std::vector<std::int64_t> contexts;
  std::int64_t q_len = 1;
  std::int64_t q_heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t head_dim = 64;
  std::int64_t block_size = 0;
  std::int64_t kv_bits = 16;
  std::string kv_format = "integer";
  std::int64_t kv_group_size = 0;
  std::int64_t k_row_stride = 0;
  std::int64_t v_row_stride = 0;
  std::int64_t window_left = -1;
  double soft_cap = 0;
  std::int64_t splits = 0;
  std::string dtype = "f16";

  Fields fields() const {
    return {{"batch", std::ssize(contexts)},
            {"contexts", contexts},
            {"q_len", q_len},
            {"q_heads", q_heads},
            {"kv_heads", kv_heads},
            {"head_dim", head_dim},
            {"block_size", block_size},
            {"kv_bits", kv_bits},
            {"kv_format", kv_format},
            {"kv_group_size", kv_group_size},
            {"k_row_stride", k_row_stride},
            {"v_row_stride", v_row_stride},
            {"window_left", window_left},
            {"soft_cap", soft_cap},
            {"splits", splits},
            {"dtype", dtype}};
  }
};

}  // namespace inferometer::test
