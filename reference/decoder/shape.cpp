#include <algorithm>
#include <array>
#include <stdexcept>

#include "harness/operator/fields.hpp"
#include "reference/decoder/problem.hpp"

namespace inferometer {
namespace {

// As the models' config.json files say.
const std::array kShapes{
    // For tests: every switch can be set on it, and a CPU generates hundreds of tokens in a second.
    DecoderShape{.name = "tiny",
                 .layers = 2,
                 .hidden = 256,
                 .q_heads = 4,
                 .kv_heads = 2,
                 .head_dim = 64,
                 .intermediate = 512,
                 .vocabulary = 512,
                 .max_length = 2048},
    DecoderShape{.name = "tinyllama",
                 .layers = 22,
                 .hidden = 2048,
                 .q_heads = 32,
                 .kv_heads = 4,
                 .head_dim = 64,
                 .intermediate = 5632,
                 .vocabulary = 32000,
                 .max_length = 2048},
    DecoderShape{.name = "llama2_7b",
                 .layers = 32,
                 .hidden = 4096,
                 .q_heads = 32,
                 .kv_heads = 32,
                 .head_dim = 128,
                 .intermediate = 11008,
                 .vocabulary = 32000,
                 .max_length = 4096},
    DecoderShape{.name = "llama3_8b",
                 .layers = 32,
                 .hidden = 4096,
                 .q_heads = 32,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .intermediate = 14336,
                 .vocabulary = 128256,
                 .max_length = 8192,
                 .rope_theta = 5e5},
    DecoderShape{.name = "llama3_70b",
                 .layers = 80,
                 .hidden = 8192,
                 .q_heads = 64,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .intermediate = 28672,
                 .vocabulary = 128256,
                 .max_length = 8192,
                 .rope_theta = 5e5},
    DecoderShape{.name = "mistral_7b",  // version 0.3, which has no sliding window
                 .layers = 32,
                 .hidden = 4096,
                 .q_heads = 32,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .intermediate = 14336,
                 .vocabulary = 32768,
                 .max_length = 32768,
                 .rope_theta = 1e6},
    DecoderShape{.name = "qwen25_7b",
                 .layers = 28,
                 .hidden = 3584,
                 .q_heads = 28,
                 .kv_heads = 4,
                 .head_dim = 128,
                 .intermediate = 18944,
                 .vocabulary = 152064,
                 .max_length = 32768,
                 .rope_theta = 1e6,
                 .norm_eps = 1e-6,
                 .qkv_bias = true},
    DecoderShape{.name = "qwen3_8b",
                 .layers = 36,
                 .hidden = 4096,
                 .q_heads = 32,
                 .kv_heads = 8,
                 .head_dim = 128,
                 .intermediate = 12288,
                 .vocabulary = 151936,
                 .max_length = 40960,
                 .rope_theta = 1e6,
                 .norm_eps = 1e-6,
                 .qk_norm = true},
};

void require_positive(const char* field, std::int64_t value) {
  if (value < 1) throw ProblemError(field, std::string(field) + " must be at least 1, got " + std::to_string(value));
}

}  // namespace

std::vector<std::string> decoder_names() {
  std::vector<std::string> names;
  for (const DecoderShape& shape : kShapes) names.push_back(shape.name);
  return names;
}

const DecoderShape& decoder_shape(std::string_view name) {
  const auto* const shape =
      std::find_if(kShapes.begin(), kShapes.end(), [&](const DecoderShape& s) { return s.name == name; });
  if (shape != kShapes.end()) return *shape;
  std::string known;
  for (const DecoderShape& s : kShapes) known += (known.empty() ? "" : ", ") + s.name;
  throw std::out_of_range("model must be one of " + known + ", got '" + std::string(name) + "'");
}

void check(const DecoderShape& s) {
  require_positive("layers", s.layers);
  require_positive("hidden", s.hidden);
  require_positive("q_heads", s.q_heads);
  require_positive("kv_heads", s.kv_heads);
  require_positive("head_dim", s.head_dim);
  require_positive("intermediate", s.intermediate);
  require_positive("vocabulary", s.vocabulary);
  require_positive("max_length", s.max_length);
  if (s.q_heads % s.kv_heads != 0)
    throw ProblemError("kv_heads", "kv_heads must divide q_heads (" + std::to_string(s.q_heads) + "), got " +
                                       std::to_string(s.kv_heads));
  if (s.head_dim % 2 != 0) throw ProblemError("head_dim", "head_dim must be even, got " + std::to_string(s.head_dim));
  if (!(s.rope_theta > 0))
    throw ProblemError("rope_theta", "rope_theta must be positive, got " + std::to_string(s.rope_theta));
  if (!(s.norm_eps > 0)) throw ProblemError("norm_eps", "norm_eps must be positive, got " + std::to_string(s.norm_eps));
}

}  // namespace inferometer
