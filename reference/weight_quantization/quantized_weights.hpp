// What a quantiser makes of a linear layer, whichever method made it: everything a file or a kernel needs, as plain
// integers, in the order of the layer's own inputs and outputs. Nothing is packed here.
//
// W is [n, k], a row an output feature. The weight of output j at input i is worth
//   W[j][i] = (codes[j][i] - zero(j, g)) * scale(j, g) / input_scale(i),   g = group_of(i)
// on the grid of rtn.hpp: symmetric codes in [-2^(bits-1), 2^(bits-1) - 1] with zero = 0, asymmetric codes and zeros in
// [0, 2^bits - 1].
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "reference/weight_quantization/rtn.hpp"

namespace inferometer {

// Weights, activations or settings that cannot be quantised. what() names the place and what came:
// "weights[3][17] must be finite, got nan".
class QuantizationError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct QuantizedWeights {
  std::int64_t n = 0;           // output features
  std::int64_t k = 0;           // input features
  GridFormat format;            // bits, symmetric, type of the scales
  std::int64_t group_size = 0;  // weights of a row that share a grid; 0: all k; the last group may be short

  std::vector<std::int16_t> codes = {};    // [n, k]       at every position, that of the input it belongs to
  std::vector<std::uint16_t> scales = {};  // [n, groups]  bits of format.scale_dtype, as stored
  std::vector<std::uint8_t> zeros = {};    // [n, groups]  empty if symmetric

  // [k]: the group of each input (g_idx). Empty: neighbours, i / group_size. Only classic act-order fills it; each
  // group still has group_size inputs.
  std::vector<std::int32_t> group_index = {};
  // [k]: what the rows of W were multiplied by before rounding (AWQ), positive; empty: 1. The layer then computes with
  // x[i] / input_scales[i]: whatever makes x, a norm's weight or the rows of the layer before it, divides by them,
  // once.
  std::vector<float> input_scales = {};

  std::vector<std::string> warnings = {};  // sentences for the user: a fallback, a damping that had to be raised

  std::int64_t group_width() const { return group_size == 0 ? k : group_size; }
  std::int64_t groups() const { return k == 0 ? 0 : (k + group_width() - 1) / group_width(); }
  std::int64_t group_of(std::int64_t input) const {
    return group_index.empty() ? input / group_width() : group_index[static_cast<std::size_t>(input)];
  }

  // Grid of output `output` in group `group`, as quantised with.
  Grid grid(std::int64_t output, std::int64_t group) const;
  void set_grid(std::int64_t output, std::int64_t group, const Grid& grid);

  // What the code is worth to the layer's own inputs: the formula above, in double precision.
  double weight(std::int64_t output, std::int64_t input) const;

  // Bits of a stored weight: codes, scales of 16 bits, zeros of `bits` bits, and 32 bits an input of group_index. Input
  // scales cost nothing, for they are folded into other weights.
  double bits_effective() const;
};

// Of that shape, all codes, scales and zeros 0. Throws QuantizationError for negative sizes, bits other than 2 to 8, or
// scales that are neither f16 nor bf16.
QuantizedWeights make_quantized_weights(std::int64_t n, std::int64_t k, const GridFormat& format,
                                        std::int64_t group_size);

}  // namespace inferometer
