// Model shapes by name, as far as a KV cache is concerned.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace inferometer {

struct ModelShape {
  std::string_view name;
  std::int64_t layers;
  std::int64_t kv_heads;
  std::int64_t head_dim;
  std::int64_t max_length;  // tokens of a sequence, as its configuration says

  // Bytes of the keys and values of one token in all layers; at 8 and 4 bits with the scales (kv_cache/layout.hpp).
  // group_size 0: one scale a head.
  std::int64_t token_bytes(std::int64_t kv_bits, std::int64_t group_size) const;
};

std::vector<std::string> model_names();
const ModelShape& model_shape(std::string_view name);  // throws std::out_of_range

}  // namespace inferometer
