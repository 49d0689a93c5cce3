// What the formats have in common: unsigned codes, tensors of checked shapes.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/checkpoint/tensor_values.hpp"
#include "reference/checkpoint/weight_format.hpp"

namespace inferometer {

LayerShape shape_of(const QuantizedWeights& weights);

// 4 or 8 bits, whole groups. `word_outputs`: n must fill words too.
std::optional<std::string> unsupported_grid(const LayerShape& shape, bool word_outputs);

// Refuses input scales, and an order of inputs where the format keeps none.
void check_storable(const std::string& layer, const QuantizedWeights& weights, bool keeps_order);

std::vector<std::uint8_t> unsigned_codes(const QuantizedWeights& weights);  // [n, k]
std::vector<std::uint8_t> unsigned_zeros(const QuantizedWeights& weights);  // [n, groups]

// The layer of n outputs and k inputs that unsigned codes and zeros describe. Symmetric settings require the middle as
// zero everywhere. `zeros` may be empty if symmetric.
QuantizedWeights weights_from(const std::string& layer, const LayerShape& shape, std::span<const std::uint8_t> codes,
                              std::span<const std::uint8_t> zeros, std::span<const std::uint16_t> scales);

// A tensor of a layer, not empty, its rank checked.
TensorView required(const TensorSource& source, const std::string& name, std::size_t rank);
[[noreturn]] void refuse_tensor(const std::string& name, const std::string& sentence);
void require_type(const TensorView& tensor, TensorType type);
void require_shape(const TensorView& tensor, const std::vector<std::uint64_t>& shape);
Dtype scale_dtype_of(const TensorView& tensor);  // F16 or BF16
TensorType scale_type(Dtype dtype);

template <class Element>
std::vector<std::byte> bytes_from(const std::vector<Element>& elements) {
  std::vector<std::byte> bytes(elements.size() * sizeof(Element));
  if (!bytes.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
  return bytes;
}

// Plans and contents, pair by pair.
std::vector<StoredTensor> zipped(std::vector<TensorPlan> plans, std::vector<std::vector<std::byte>> contents);

}  // namespace inferometer
