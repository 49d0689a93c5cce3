#include "reference/decoder/checkpoint_weights.hpp"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "harness/operator/dtype.hpp"
#include "reference/checkpoint/checkpoint_error.hpp"
#include "reference/checkpoint/decoder_config.hpp"
#include "reference/checkpoint/tensor_values.hpp"

namespace inferometer {
namespace {

std::string shown(std::span<const std::uint64_t> shape) {
  std::string text = "[";
  for (const std::uint64_t size : shape) text += (text.size() == 1 ? "" : ", ") + std::to_string(size);
  return text + "]";
}

void check_tensor(const ModelFiles& files, const DecoderShape& shape, const PlacedWeight& placed) {
  const std::string name = weight_name(placed.weight, placed.layer);
  const TensorView tensor = files.tensor(name);
  const auto refuse = [&](const std::string& sentence) {
    throw CheckpointError(CheckpointFault::content, files.file_of(name).path(), name, std::nullopt, sentence);
  };
  const WeightSize size = weight_size(shape, placed.weight);
  const auto rows = static_cast<std::uint64_t>(size.rows);
  const auto columns = static_cast<std::uint64_t>(size.columns);
  const std::vector<std::uint64_t> expected =
      size.rows == 1 && tensor.shape.size() == 1 ? std::vector{columns} : std::vector{rows, columns};
  if (!std::equal(tensor.shape.begin(), tensor.shape.end(), expected.begin(), expected.end()))
    refuse("its shape must be " + shown(expected) + ", as config.json says, got " + shown(tensor.shape));
  if (tensor.type != TensorType::f16 && tensor.type != TensorType::bf16 && tensor.type != TensorType::f32)
    refuse("its type must be F16, BF16 or F32, got " + std::string(type_name(tensor.type)));
}

}  // namespace

CheckpointWeights::CheckpointWeights(const std::string& folder) : shape_(read_decoder_config(folder)), files_(folder) {
  for (const PlacedWeight& placed : all_weights(shape_)) check_tensor(files_, shape_, placed);
}

void CheckpointWeights::read(const PlacedWeight& tensor, std::int64_t row, std::int64_t rows,
                             std::span<std::uint16_t> to) const {
  const std::string name = weight_name(tensor.weight, tensor.layer);
  const std::int64_t columns = weight_size(shape_, tensor.weight).columns;
  const std::vector<float> values = float_values(files_.tensor(name), static_cast<std::uint64_t>(row * columns),
                                                 static_cast<std::uint64_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) {
    to[i] = f16_bits(values[i]);
    if (!std::isfinite(f16_value(to[i])))
      throw CheckpointError(CheckpointFault::content, files_.file_of(name).path(), name, std::nullopt,
                            "values must be at most 65504, which f16 holds, got " + std::to_string(values[i]));
  }
}

}  // namespace inferometer
