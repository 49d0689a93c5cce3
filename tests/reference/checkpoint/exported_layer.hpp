// A linear layer on its whole way: float weights, GPTQ, a file in one of the formats, import, the tensors of matmul.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reference/checkpoint/safetensors_file.hpp"
#include "reference/checkpoint/weight_format.hpp"
#include "reference/matmul/layout.hpp"
#include "reference/matmul/problem.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "tests/reference/checkpoint/checkpoint_files.hpp"
#include "tests/reference/matmul/quantized_problem.hpp"
#include "tests/reference/weight_quantization/layers.hpp"

namespace inferometer::test {

struct ExportedLayer {
  std::string name;            // of the case, for messages
  QuantizedWeights quantized;  // as GPTQ made them
  QuantizedWeights imported;   // as they come from the file
};

// n and k fill words of every format and tiles of no kernel.
inline ExportedLayer export_layer(const WeightFormat& format, const QuantizationSettings& settings, Dtype scale_dtype) {
  constexpr std::int64_t kOutputs = 72;
  constexpr std::int64_t kInputs = 384;
  const std::string layer = "model.layers.0.mlp.up_proj";
  ExportedLayer made{.name = std::string(format.name) + " bits=" + std::to_string(settings.bits) +
                             " group_size=" + std::to_string(settings.group_size) +
                             (settings.symmetric ? " symmetric " : " ") + std::string(dtype_name(scale_dtype)),
                     .quantized = {},
                     .imported = {}};
  const RowMajorF weights = random_weights(11, kOutputs, kInputs);
  const Calibration calibration = calibrate(view(correlated_activations(11, 800, kInputs)), 2);
  const QuantizerGrid grid{
      .format = {.bits = settings.bits, .symmetric = settings.symmetric, .scale_dtype = scale_dtype},
      .group_size = settings.group_size};
  made.quantized =
      quantize_gptq(view(weights), calibration, {.grid = grid, .order = ColumnOrder::whole_groups}, 2).weights;

  const ScratchFolder folder;
  std::vector<TestTensor> tensors;
  for (StoredTensor& tensor : format.store(layer, made.quantized))
    tensors.push_back({.plan = std::move(tensor.plan), .data = std::move(tensor.data)});
  write_tensors(folder / "model.safetensors", tensors);
  const SafetensorsFile file(folder / "model.safetensors");
  made.imported = format.load(layer, settings, [&](const std::string& name) -> std::optional<TensorView> {
    const TensorEntry* const entry = file.find(name);
    return entry == nullptr ? std::nullopt : std::optional(file.view(*entry));
  });
  return made;
}

// Every format with all that kernels take: groups, zero points, the type of the scales.
inline std::vector<ExportedLayer> exported_layers() {
  std::vector<ExportedLayer> layers;
  for (const WeightFormat* format : inferometer::weight_formats())
    for (const std::int64_t bits : {4, 8})
      for (const std::int64_t group_size : {32, 128, 0})
        for (const bool symmetric : {true, false})
          for (const Dtype dtype : {Dtype::f16, Dtype::bf16}) {
            const QuantizationSettings settings{.bits = bits, .group_size = group_size, .symmetric = symmetric};
            if (bits == 8 && format == &kAwqFormat) continue;                           // it holds 4 bits alone
            if (dtype == Dtype::bf16 && format != &kCompressedTensorsFormat) continue;  // loaders take f16 there
            layers.push_back(export_layer(*format, settings, dtype));
          }
  return layers;
}

// The product of that layer with m tokens.
inline MatmulProblem matmul_with(const QuantizedWeights& q, std::int64_t m) {
  return {.m = m,
          .n = q.n,
          .k = q.k,
          .bits = q.format.bits,
          .group_size = q.group_size,
          .symmetric = q.format.symmetric,
          .dtype = q.format.scale_dtype};
}

// Its tensors: codes, scales and zeros in matmul's canonical form, x as given.
inline EditTensors tensors_with(const QuantizedWeights& q, const MatmulProblem& p, ElementOf x) {
  const std::int64_t groups = q.groups();
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(q.n * code_row_bytes(p)));
  std::vector<std::uint8_t> zeros(static_cast<std::size_t>(q.n * zero_row_bytes(p)));
  std::vector<std::int32_t> row(static_cast<std::size_t>(q.k));
  std::vector<std::int32_t> row_zeros(static_cast<std::size_t>(groups));
  for (std::int64_t j = 0; j < q.n; ++j) {
    std::copy_n(q.codes.begin() + j * q.k, q.k, row.begin());
    pack_codes(p, row,
               std::span(codes).subspan(static_cast<std::size_t>(j * code_row_bytes(p)),
                                        static_cast<std::size_t>(code_row_bytes(p))));
    if (p.symmetric) continue;
    std::copy_n(q.zeros.begin() + j * groups, groups, row_zeros.begin());
    pack_zeros(p, row_zeros,
               std::span(zeros).subspan(static_cast<std::size_t>(j * zero_row_bytes(p)),
                                        static_cast<std::size_t>(zero_row_bytes(p))));
  }
  std::vector<float> scales;
  for (std::int64_t j = 0; j < q.n; ++j)
    for (std::int64_t g = 0; g < groups; ++g) scales.push_back(q.grid(j, g).scale);
  const auto element_of = [](auto values) {
    const auto held = std::make_shared<const decltype(values)>(std::move(values));
    return [held](std::int64_t i) { return static_cast<float>((*held)[static_cast<std::size_t>(i)]); };
  };
  return with_elements({{"x", std::move(x)},
                        {"w", element_of(std::move(codes))},
                        {"scales", element_of(std::move(scales))},
                        {"zeros", element_of(std::move(zeros))}});
}

// Y of unit rows is W^T: each element one weight, rounded once. Y of ordinary tokens is the dequantised product, within
// the operator's own tolerance.
inline void check_product(const std::string& variant, const ExportedLayer& layer) {
  const QuantizedWeights& q = layer.imported;
  INFO(variant << " " << layer.name);
  MatmulProblem p = matmul_with(q, q.k);
  const EditTensors unit_rows =
      tensors_with(q, p, [k = q.k](std::int64_t at) { return at / k == at % k ? 1.0F : 0.0F; });
  const VariantRun columns = run_variant("matmul", variant, quantized_fields(p), 1, unit_rows);
  REQUIRE(columns.unsupported.empty());
  INFO(columns.check.reason);
  CHECK(columns.check.passed);
  const std::vector<float>& y = columns.outputs.at("y");
  for (std::int64_t i = 0; i < q.k; ++i)
    for (std::int64_t j = 0; j < q.n; ++j) {
      const auto weight = static_cast<float>(layer.quantized.weight(j, i));
      const float rounded = p.dtype == Dtype::f16 ? f16_value(f16_bits(weight)) : bf16_value(bf16_bits(weight));
      REQUIRE(y[static_cast<std::size_t>(i * q.n + j)] == rounded);
    }
  for (const std::int64_t m : {1, 16, 40}) {
    p.m = m;
    const auto token = [](std::int64_t at) { return static_cast<float>(at * 7919 % 257 - 128) / 64; };
    const VariantRun tokens = run_variant("matmul", variant, quantized_fields(p), 1, tensors_with(q, p, token));
    INFO("m = " << m << " " << tokens.check.reason);
    CHECK(tokens.check.passed);
    double error = 0;
    double norm = 0;
    for (std::int64_t t = 0; t < m; ++t)
      for (std::int64_t j = 0; j < q.n; ++j) {
        double product = 0;
        for (std::int64_t i = 0; i < q.k; ++i)
          product += static_cast<double>(token(t * q.k + i)) * layer.quantized.weight(j, i);
        error += std::pow(tokens.outputs.at("y")[static_cast<std::size_t>(t * q.n + j)] - product, 2);
        norm += product * product;
      }
    // One rounding of Y, and of each weight times its scale where tensor cores take them: independent errors of at most
    // u each, 0.6 u of the norm in each of the two.
    CHECK(std::sqrt(error / norm) <= 2.5 * unit_roundoff(p.dtype));
  }
}

}  // namespace inferometer::test
