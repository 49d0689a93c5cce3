#include "reference/kv_memory/model_shape.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>

namespace inferometer {
namespace {

constexpr ModelShape kShapes[] = {
    {.name = "opt_13b", .layers = 40, .kv_heads = 40, .head_dim = 128, .max_length = 2048},
    {.name = "opt_66b", .layers = 64, .kv_heads = 72, .head_dim = 128, .max_length = 2048},
    {.name = "opt_175b", .layers = 96, .kv_heads = 96, .head_dim = 128, .max_length = 2048},
    {.name = "llama2_7b", .layers = 32, .kv_heads = 32, .head_dim = 128, .max_length = 4096},
    {.name = "llama2_13b", .layers = 40, .kv_heads = 40, .head_dim = 128, .max_length = 4096},
    {.name = "llama3_8b", .layers = 32, .kv_heads = 8, .head_dim = 128, .max_length = 8192},
    {.name = "llama3_70b", .layers = 80, .kv_heads = 8, .head_dim = 128, .max_length = 8192},
    {.name = "llama31_8b", .layers = 32, .kv_heads = 8, .head_dim = 128, .max_length = 131072},
    {.name = "llama31_70b", .layers = 80, .kv_heads = 8, .head_dim = 128, .max_length = 131072},
    {.name = "qwen25_7b", .layers = 28, .kv_heads = 4, .head_dim = 128, .max_length = 32768},
};

constexpr std::int64_t kRowAlignment = 16;  // bytes: rows of codes begin at a multiple of it
constexpr std::int64_t kScaleBytes = 2;     // f16

}  // namespace

std::int64_t ModelShape::token_bytes(std::int64_t kv_bits, std::int64_t group_size) const {
  if (kv_bits == 16) return 2 * layers * kv_heads * head_dim * 2;
  const std::int64_t code_bytes = head_dim * kv_bits / 8;
  const std::int64_t row_bytes = (code_bytes + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
  const std::int64_t groups = group_size == 0 ? 1 : head_dim / group_size;
  return 2 * layers * kv_heads * (row_bytes + groups * kScaleBytes);
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  std::transform(std::begin(kShapes), std::end(kShapes), std::back_inserter(names),
                 [](const ModelShape& shape) { return std::string(shape.name); });
  return names;
}

const ModelShape& model_shape(std::string_view name) {
  const auto* const shape =
      std::find_if(std::begin(kShapes), std::end(kShapes), [&](const ModelShape& s) { return s.name == name; });
  if (shape == std::end(kShapes)) throw std::out_of_range("no model shape '" + std::string(name) + "'");
  return *shape;
}

}  // namespace inferometer
