#include "reference/weight_quantization/file_layer.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "harness/operator/nearest_word.hpp"
#include "harness/sweep/sweep.hpp"
#include "reference/checkpoint/model_files.hpp"
#include "reference/checkpoint/tensor_values.hpp"

namespace inferometer {
namespace {

using Problem = WeightQuantizationProblem;

constexpr std::string_view kWeight = ".weight";

[[noreturn]] void refuse(const std::string& file, std::string_view tensor, const std::string& sentence) {
  throw CheckpointError(CheckpointFault::content, file, std::string(tensor), std::nullopt, sentence);
}

ModelFiles open_model(const Problem& p) {
  try {
    return ModelFiles(p.source);
  } catch (const ConfigError& error) {  // of an index that is no JSON
    refuse(p.source, "", error.what());
  }
}

void require_matrix(const std::string& file, const TensorView& tensor) {
  if (!is_plain_float(tensor.type) || tensor.shape.size() != 2 || tensor.data.empty())
    refuse(file, tensor.name, "must be a matrix of F16, BF16 or F32");
}

TensorView weights_in(const ModelFiles& model, const Problem& p) {
  const TensorView tensor = model.tensor(p.tensor);
  require_matrix(model.file_of(p.tensor).path(), tensor);
  return tensor;
}

class FileLayer : public LayerSource {
 public:
  explicit FileLayer(const Problem& p)
      : model_(open_model(p)), activations_file_(p.activations), weights_(weights_in(model_, p)) {
    const std::string layer =
        p.tensor.ends_with(kWeight) ? p.tensor.substr(0, p.tensor.size() - kWeight.size()) : p.tensor;
    const TensorEntry* const entry = activations_file_.find(layer);
    if (entry == nullptr)
      throw CheckpointError(CheckpointFault::missing, p.activations, layer, std::nullopt,
                            "is not there: the activations [tokens, " + std::to_string(weights_.shape[1]) +
                                "] that enter " + in_quotes(p.tensor));
    activations_ = activations_file_.view(*entry);
    require_matrix(p.activations, activations_);
    if (activations_.shape[1] != weights_.shape[1])
      refuse(p.activations, layer,
             "must have " + std::to_string(weights_.shape[1]) + " columns, one for each input of " +
                 in_quotes(p.tensor) + ", got " + std::to_string(activations_.shape[1]));
    if (const auto wanted = static_cast<std::uint64_t>(p.calibration_tokens + p.held_out_tokens);
        activations_.shape[0] < wanted)
      refuse(p.activations, layer,
             "must have at least calibration_tokens + held_out_tokens = " + std::to_string(wanted) + " rows, got " +
                 std::to_string(activations_.shape[0]));
  }

  void weights(std::int64_t output, std::span<float> row) const override {
    read_row(model_.file_of(weights_.name).path(), weights_, output, row);
  }

  void activations(std::int64_t token, std::span<float> row) const override {
    read_row(activations_file_.path(), activations_, token, row);
  }

 private:
  static void read_row(const std::string& file, const TensorView& tensor, std::int64_t number, std::span<float> row) {
    const std::vector<float> values =
        float_values(tensor, static_cast<std::uint64_t>(number) * tensor.shape[1], tensor.shape[1]);
    const auto other = std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
    if (other != values.end())
      refuse(file, tensor.name,
             "[" + std::to_string(number) + "][" + std::to_string(other - values.begin()) + "] must be finite, got " +
                 std::to_string(*other));
    std::copy(values.begin(), values.end(), row.begin());
  }

  ModelFiles model_;
  SafetensorsFile activations_file_;
  TensorView weights_;
  TensorView activations_;
};

}  // namespace

LayerShapeInFile layer_shape_in_file(const Problem& p) {
  const ModelFiles model = open_model(p);
  const TensorView weights = weights_in(model, p);
  return {.n = static_cast<std::int64_t>(weights.shape[0]), .k = static_cast<std::int64_t>(weights.shape[1])};
}

std::shared_ptr<const LayerSource> open_file_layer(const Problem& p) { return std::make_shared<FileLayer>(p); }

}  // namespace inferometer
