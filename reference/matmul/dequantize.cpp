// matmul / cpu.dequantize: the meaning of 8- and 4-bit weights: unpack some rows, make numbers of them, multiply.
//
// Weights become floats, each rounded once, and are multiplied in f32. With activation_bits 8 X becomes int8 too
// (token_codes.hpp), the sums are integers, and the scales come last.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "harness/operator/parallel.hpp"
#include "harness/operator/variant.hpp"
#include "reference/common/convert.hpp"
#include "reference/common/eigen.hpp"
#include "reference/matmul/problem.hpp"
#include "reference/matmul/token_codes.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;
using Tensors = MatmulTensors;

constexpr std::int64_t kPanelRows = 16;  // of W, that a thread holds as numbers

template <class Number>
using Rows = Eigen::Matrix<Number, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// q of one row, [k].
void read_codes(const Problem& p, const Tensors& t, std::int64_t row, std::span<std::int32_t> q) {
  const auto* const bytes = static_cast<const std::uint8_t*>(t.w) + row * p.k * p.bits / 8;
  if (p.bits == 4) {
    const std::int32_t bias = p.symmetric ? 8 : 0;
    for (std::size_t i = 0; i < q.size(); i += 2) {
      q[i] = (bytes[i / 2] & 0xf) - bias;
      q[i + 1] = (bytes[i / 2] >> 4) - bias;
    }
  } else if (p.symmetric) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = bytes[i] < 128 ? bytes[i] : bytes[i] - 256;
  } else {
    std::copy_n(bytes, q.size(), q.begin());
  }
}

std::int32_t zero_point(const Problem& p, const Tensors& t, std::int64_t row, std::int64_t group) {
  if (p.symmetric) return 0;
  if (p.bits == 8) return t.zeros[row * p.groups() + group];
  const std::uint8_t pair = t.zeros[row * ((p.groups() + 1) / 2) + group / 2];
  return group % 2 == 0 ? pair & 0xf : pair >> 4;
}

// One row as numbers: (q - z) s.
void dequantize_row(const Problem& p, const Tensors& t, std::int64_t row, std::span<std::int32_t> q, float* weights) {
  read_codes(p, t, row, q);
  std::vector<float> scales(static_cast<std::size_t>(p.groups()));
  load_floats(p.dtype, t.scales, row * p.groups(), p.groups(), scales.data());
  const std::int64_t size = p.group_size == 0 ? p.k : p.group_size;
  for (std::int64_t group = 0; group < p.groups(); ++group) {
    const std::int32_t zero = zero_point(p, t, row, group);
    const float scale = scales[static_cast<std::size_t>(group)];
    for (std::int64_t i = group * size; i < std::min(p.k, (group + 1) * size); ++i)
      weights[i] = static_cast<float>(q[static_cast<std::size_t>(i)] - zero) * scale;
  }
}

// y [tokens, rows] to columns first_row, ... of Y.
void store_panel(const Problem& p, const Tensors& t, std::int64_t first_row, const Rows<float>& y) {
  for (std::int64_t i = 0; i < p.m; ++i) store_floats(p.dtype, y.row(i).data(), y.cols(), t.y, i * p.n + first_row);
}

template <class Panel>
void for_each_panel(const Problem& p, int threads, const Panel& panel) {
  parallel_for((p.n + kPanelRows - 1) / kPanelRows, threads,
               [&](std::int64_t i) { panel(i * kPanelRows, std::min(kPanelRows, p.n - i * kPanelRows)); });
}

void multiply_floats(const Problem& p, const Tensors& t, std::span<std::byte> workspace, int threads) {
  Eigen::Map<Rows<float>> x(reinterpret_cast<float*>(workspace.data()), p.m, p.k);
  parallel_for(p.m, threads, [&](std::int64_t i) { load_floats(p.dtype, t.x, i * p.k, p.k, x.row(i).data()); });
  for_each_panel(p, threads, [&](std::int64_t first, std::int64_t count) {
    Rows<float> w(count, p.k);
    std::vector<std::int32_t> q(static_cast<std::size_t>(p.k));
    for (std::int64_t j = 0; j < count; ++j) dequantize_row(p, t, first + j, q, w.row(j).data());
    store_panel(p, t, first, x * w.transpose());
  });
}

// Codes of X as 32-bit integers, then a scale for each token.
void multiply_integers(const Problem& p, const Tensors& t, std::span<std::byte> workspace, int threads) {
  Eigen::Map<Rows<std::int32_t>> x(reinterpret_cast<std::int32_t*>(workspace.data()), p.m, p.k);
  Eigen::Map<Eigen::VectorXf> scales(reinterpret_cast<float*>(workspace.data()) + p.m * p.k, p.m);
  parallel_for(p.m, threads, [&](std::int64_t i) {
    std::vector<float> token(static_cast<std::size_t>(p.k));
    std::vector<std::int8_t> codes(token.size());
    load_floats(p.dtype, t.x, i * p.k, p.k, token.data());
    scales[i] = quantize_token(token, codes);
    std::copy(codes.begin(), codes.end(), x.row(i).data());
  });
  for_each_panel(p, threads, [&](std::int64_t first, std::int64_t count) {
    Rows<std::int32_t> w(count, p.k);
    Eigen::RowVectorXf weight_scales(count);
    for (std::int64_t j = 0; j < count; ++j)
      read_codes(p, t, first + j, {w.row(j).data(), static_cast<std::size_t>(p.k)});
    load_floats(p.dtype, t.scales, first, count, weight_scales.data());
    const Rows<std::int32_t> sums = x * w.transpose();
    store_panel(p, t, first, (sums.cast<float>().array() * (scales * weight_scales).array()).matrix());
  });
}

std::optional<std::string> unsupported(const Problem& p) {
  if (!p.is_quantized()) return "bits must be 8 or 4, got 16";
  return std::nullopt;
}

// X as floats or as 32-bit integers with scales.
std::size_t workspace_bytes(const Problem& p) { return static_cast<std::size_t>(p.m * (p.k + 1)) * sizeof(float); }

void run(const Problem& p, const Tensors& t, const Launch& launch) {
  p.activation_bits == 8 ? multiply_integers(p, t, launch.workspace, launch.threads)
                         : multiply_floats(p, t, launch.workspace, launch.threads);
}

const RegisterVariant<Matmul> registered{{
    .name = "cpu.dequantize",
    .summary = "some rows of 8- or 4-bit weights at a time to numbers, multiplied by Eigen",
    .unsupported = &unsupported,
    .workspace_bytes = &workspace_bytes,
    .run = &run,
}};

}  // namespace
}  // namespace inferometer
