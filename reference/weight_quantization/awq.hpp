// AWQ: scales the inputs that carry much up before rounding, so that their weights are rounded less coarsely. Lin,
// Tang, Tang, Yang, Chen, Wang, Xiao, Dang, Gan, Han, "AWQ: Activation-aware Weight Quantization for LLM Compression
// and Acceleration", MLSys 2024.
//
// The layer computes (W diag(s)) (x / s). With s_i = m_i^ratio, m the mean of |x_i|, divided by sqrt(max s * min s), it
// takes the ratio of a grid with the least tr(D H D^T), D = dequantise(round(W diag(s))) diag(1/s) - W; then, group by
// group, the part of the range to clip at. Ratio 0 is s = 1, and clips are kept only where they lower the objective of
// the whole layer, so the result is never worse than rounding to nearest by that measure.
//
// The scales come back in QuantizedWeights::input_scales. Whoever writes a file folds 1/s into what makes x: the weight
// of the norm before the layer, or the rows of the layer before it; layers that read the same x must share s. That
// rounds 1/s times the other weight to its type, which is not part of the errors reported here.
#pragma once

#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

struct AwqSettings {
  QuantizerGrid grid = {};
  std::int64_t ratios = 20;  // 0, 1/20, ..., 19/20; 1: s = 1 alone
  bool clip = true;          // look for a part of each group's range, 1.00, 0.95, ..., 0.50
};

// weights [n, k]. Without a live input weights are rounded to nearest, with a warning. Rows in parallel, same bits for
// any number of threads. Throws QuantizationError (quantizer.hpp), and for fewer ratios than 1.
// About (ratios + 2) n k^2 operations; clipping adds 22 n k group_size.
QuantizerResult quantize_awq(const FloatMatrix& weights, const Calibration& calibration, const AwqSettings& settings,
                             int threads);

}  // namespace inferometer
