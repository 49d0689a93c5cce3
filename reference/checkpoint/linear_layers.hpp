// Which tensors of a model are weights of linear layers, and which layers read the same input.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reference/checkpoint/model_files.hpp"

namespace inferometer {

// Layers are named as in loaders, without ".weight".
struct LinearLayers {
  std::vector<std::string> chosen;
  std::vector<std::string> kept;  // the linear layers that stay as they are
};

// A linear layer is a floating [n, k] tensor L.weight that is no embedding (no part of the name says "embed" or is
// "wte" or "wpe"). Without globs, all but the output head (lm_head, output) and routers (gate, router) are chosen;
// with globs, the linear layers whose names match one. Throws ConfigError when a glob matches no linear layer, or
// nothing is chosen.
LinearLayers choose_layers(const ModelFiles& model, const std::vector<std::string>& globs);

// Layers that are quantised together.
struct LayerGroup {
  std::vector<std::string> layers;  // all read the same input
  std::string norm;  // the tensor that all of that input is multiplied with, channel by channel; empty: none is known
};

// In the order of `layers`. Of a Llama-shaped block, q_proj, k_proj, v_proj read what input_layernorm gives, and
// gate_proj and up_proj what post_attention_layernorm gives; every other layer is on its own. A norm is named only if
// the model has it and all its readers are among `layers`: else scaling it would change a layer that stays as it is.
std::vector<LayerGroup> group_layers(const ModelFiles& model, const std::vector<std::string>& layers);

}  // namespace inferometer
