// GPTQ: rounds the columns of a weight matrix one after the other, and lets those that are still to come make up for
// what each rounding did to the outputs. Frantar, Ashkboos, Hoefler, Alistarh, "GPTQ: Accurate Post-Training
// Quantization for Generative Pre-trained Transformers", ICLR 2023, algorithm 1; the column update is that of Optimal
// Brain Quantization (Frantar and Alistarh, NeurIPS 2022).
//
// For W [n, k] and H = mean x x^T it looks for codes with a small tr(D H D^T), D = dequantised - W. With U from
// H^-1 = U^T U, upper triangular, and w the weights as updated so far, column i gives
//   q_i = nearest code of w_i,  e_i = (w_i - dequantised q_i) / U_ii,  w_j -= e_i U_ij for all j > i,
// and tr(D H D^T) is the sum of all e_i^2.
#pragma once

#include "reference/weight_quantization/column_order.hpp"
#include "reference/weight_quantization/quantizer.hpp"

namespace inferometer {

struct GptqSettings {
  QuantizerGrid grid = {};
  // Added to the diagonal of H, as a share of its mean over live inputs. Should the factorisation fail, a retry comes
  // with a warning; after the last one weights are rounded to nearest, with a warning.
  double damping = 0.01;
  ColumnOrder order = ColumnOrder::given;
  // Grids from the weights as given, before any update; else from the weights as updated when their group's turn comes.
  bool static_groups = false;
  std::int64_t block = 128;  // columns whose updates reach the ones behind them in one product; of the speed only
};

// weights [n, k]. An input that was always 0 gets weights of 0. Without a live input weights are rounded to nearest,
// with a warning. In double precision; slabs of rows in parallel, same bits for any number of threads.
// Throws QuantizationError (quantizer.hpp), and for damping that is not in [0, 1] or a block below 1.
// Takes 8 k^2 bytes beside the calibration.
QuantizerResult quantize_gptq(const FloatMatrix& weights, const Calibration& calibration, const GptqSettings& settings,
                              int threads);

}  // namespace inferometer
