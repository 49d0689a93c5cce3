#include "reference/checkpoint/linear_layers.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/glob.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/tensor_values.hpp"

namespace inferometer {
namespace {

constexpr std::string_view kWeight = ".weight";

std::string_view last_part(std::string_view name) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? name : name.substr(dot + 1);
}

bool is_linear(const TensorView& tensor) {
  if (tensor.shape.size() != 2 || tensor.data.empty() || !tensor.name.ends_with(kWeight)) return false;
  if (!is_plain_float(tensor.type)) return false;
  const std::string_view layer = tensor.name.substr(0, tensor.name.size() - kWeight.size());
  const std::string_view last = last_part(layer);
  return layer.find("embed") == std::string_view::npos && last != "wte" && last != "wpe";
}

// What formats' loaders leave as it is.
bool usually_kept(std::string_view layer) {
  const std::string_view last = last_part(layer);
  return last == "lm_head" || last == "output" || last == "gate" || last == "router";
}

struct SharedInput {
  std::string_view norm;
  std::string_view block;  // between the layers' common prefix and their names
  std::array<std::string_view, 3> readers;
};

// transformers/models/llama/modeling_llama.py, LlamaDecoderLayer.forward; Mistral's and Qwen2's are the same.
constexpr std::array kLlamaInputs{
    SharedInput{"input_layernorm.weight", "self_attn.", {"q_proj", "k_proj", "v_proj"}},
    SharedInput{"post_attention_layernorm.weight", "mlp.", {"gate_proj", "up_proj", ""}},
};

// The group that `layer` belongs to, as far as its members are chosen.
LayerGroup group_of(const ModelFiles& model, const std::set<std::string>& chosen, const std::string& layer) {
  for (const SharedInput& input : kLlamaInputs) {
    for (const std::string_view reader : input.readers) {
      const std::string ending = "." + std::string(input.block) + std::string(reader);
      if (reader.empty() || !layer.ends_with(ending)) continue;
      const std::string block = layer.substr(0, layer.size() - ending.size() + 1);
      LayerGroup group;
      bool all = true;
      for (const std::string_view member : input.readers) {
        if (member.empty()) continue;
        const std::string name = block + std::string(input.block) + std::string(member);
        if (chosen.contains(name)) {
          group.layers.push_back(name);
        } else {
          all = false;
        }
      }
      const std::string norm = block + std::string(input.norm);
      // A bias would have to be scaled as well; these models have none.
      const bool biased = model.has(block + std::string(input.norm.substr(0, input.norm.rfind('.'))) + ".bias");
      if (all && model.has(norm) && !biased) group.norm = norm;
      return group;
    }
  }
  return {.layers = {layer}, .norm = {}};
}

}  // namespace

LinearLayers choose_layers(const ModelFiles& model, const std::vector<std::string>& globs) {
  LinearLayers found;
  std::vector<bool> matched(globs.size());
  std::vector<std::string> all;
  for (const std::string& name : model.names()) {
    if (!is_linear(model.tensor(name))) continue;
    const std::string layer = name.substr(0, name.size() - kWeight.size());
    all.push_back(layer);
    bool take = globs.empty() && !usually_kept(layer);
    for (std::size_t i = 0; i < globs.size(); ++i) {
      if (!glob_matches(globs[i], layer)) continue;
      matched[i] = true;
      take = true;
    }
    (take ? found.chosen : found.kept).push_back(layer);
  }
  for (std::size_t i = 0; i < globs.size(); ++i) {
    if (matched[i]) continue;
    const std::string nearest = nearest_word(globs[i], all);
    throw ConfigError("quantize: --layers " + in_quotes(globs[i]) + " matches no linear layer of the model" +
                      (nearest.empty() ? "" : "; the nearest is " + in_quotes(nearest)));
  }
  if (found.chosen.empty())
    throw ConfigError(
        "quantize: the model has no linear layer to quantise: no F16, BF16 or F32 tensor [n, k] whose "
        "name ends in .weight, embeddings, lm_head and routers apart");
  return found;
}

std::vector<LayerGroup> group_layers(const ModelFiles& model, const std::vector<std::string>& layers) {
  const std::set<std::string> chosen(layers.begin(), layers.end());
  std::set<std::string> done;
  std::vector<LayerGroup> groups;
  for (const std::string& layer : layers) {
    if (done.contains(layer)) continue;
    groups.push_back(group_of(model, chosen, layer));
    done.insert(groups.back().layers.begin(), groups.back().layers.end());
  }
  return groups;
}

}  // namespace inferometer
