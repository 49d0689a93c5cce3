// What config.json says of a decoder, as transformers writes it.
#pragma once

#include <string>

#include "reference/decoder/problem.hpp"

namespace inferometer {

// From config.json in the folder of a model of the types llama, mistral, qwen2 and qwen3. Throws ConfigError, naming
// the file and the key, for other types, and for what such a model has that this decoder has not: scaled RoPE, other
// activations, biases elsewhere than at q, k and v, quantised weights. A sliding window bounds max_length: up to it, a
// window leaves nothing out.
DecoderShape read_decoder_config(const std::string& folder);

}  // namespace inferometer
