// Elements of a tensor in a file as numbers. Tensors may lie at any address: nothing is read in place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/checkpoint/safetensors_file.hpp"

namespace inferometer {

// Whether the type holds numbers that a float holds exactly: F16, BF16, F32, F8_E4M3, F8_E5M2.
bool has_float_values(TensorType type);

// F16, BF16 or F32: what weights, activations and norms of models are held in before anything is quantised.
bool is_plain_float(TensorType type);

// Elements begin, ..., begin + count - 1 of such a tensor. Throws std::invalid_argument for another type, or elements
// that it does not have.
std::vector<float> float_values(const TensorView& tensor, std::uint64_t begin, std::uint64_t count);

// All elements as they stand there. Throws std::invalid_argument when `Element` has another width.
template <class Element>
std::vector<Element> stored_values(const TensorView& tensor) {
  if (type_bits(tensor.type) != 8 * static_cast<int>(sizeof(Element)))
    throw std::invalid_argument("stored_values: elements of " + std::string(type_name(tensor.type)) + " have " +
                                std::to_string(type_bits(tensor.type)) + " bits");
  std::vector<Element> values(tensor.data.size() / sizeof(Element));
  if (!values.empty()) std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

// Micikevicius et al. 2022, "FP8 Formats for Deep Learning", table 1.
float f8_e4m3_value(std::uint8_t bits);  // no infinities; all of exponent and mantissa set is NaN
float f8_e5m2_value(std::uint8_t bits);  // the upper half of an F16

}  // namespace inferometer
