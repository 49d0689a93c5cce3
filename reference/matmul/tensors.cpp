#include "reference/matmul/tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "reference/matmul/layout.hpp"
#include "reference/matmul/weights.hpp"

namespace inferometer {
namespace {

using Problem = MatmulProblem;

// Makes the rows of a tensor [n, row] from rows of quantised weights. `write` fills one row of it.
template <class Element>
Computed by_rows(const Problem& p, std::int64_t row_elements,
                 std::function<void(const Problem&, const QuantizedRow&, std::span<Element>)> write) {
  return {.fill =
              [p, row_elements, write](std::uint64_t seed, std::int64_t begin, std::int64_t count, void* elements) {
                auto* next = static_cast<Element*>(elements);
                std::vector<Element> whole(static_cast<std::size_t>(row_elements));
                for (const std::int64_t end = begin + count; begin < end;) {
                  const std::int64_t row = begin / row_elements;
                  const std::int64_t stop = std::min(end, (row + 1) * row_elements);
                  write(p, quantize_synthetic_row(p, seed, row), whole);
                  next = std::copy(whole.begin() + (begin - row * row_elements),
                                   whole.begin() + (stop - row * row_elements), next);
                  begin = stop;
                }
              },
          .row_elements = row_elements};
}

void write_codes(const Problem& p, const QuantizedRow& row, std::span<std::uint8_t> bytes) {
  pack_codes(p, row.codes, bytes);
}

void write_scales(const Problem&, const QuantizedRow& row, std::span<std::uint16_t> scales) {
  std::transform(row.grids.begin(), row.grids.end(), scales.begin(), [](const Grid& grid) { return grid.scale_bits; });
}

void write_zeros(const Problem& p, const QuantizedRow& row, std::span<std::uint8_t> bytes) {
  std::vector<std::int32_t> zeros(row.grids.size());
  std::transform(row.grids.begin(), row.grids.end(), zeros.begin(), [](const Grid& grid) { return grid.zero; });
  pack_zeros(p, zeros, bytes);
}

TensorSpec weights_tensor(std::string name, Dtype dtype, std::int64_t rows, std::int64_t row_elements) {
  return {.name = std::move(name), .role = Role::weights, .dtype = dtype, .shape = {rows, row_elements}};
}

}  // namespace

std::vector<TensorSpec> matmul_tensors(const Problem& p) {
  std::vector<TensorSpec> specs{{.name = "x", .dtype = p.dtype, .shape = {p.m, p.k}}};
  if (!p.is_quantized()) {
    specs.push_back(p.w_transposed ? weights_tensor("w", p.dtype, p.k, p.n) : weights_tensor("w", p.dtype, p.n, p.k));
  } else {
    specs.push_back(weights_tensor("w", Dtype::u8, p.n, code_row_bytes(p)));
    specs.back().source = by_rows<std::uint8_t>(p, code_row_bytes(p), &write_codes);
    specs.push_back(weights_tensor("scales", p.dtype, p.n, p.groups()));
    specs.back().source = by_rows<std::uint16_t>(p, p.groups(), &write_scales);
    if (!p.symmetric) {
      specs.push_back(weights_tensor("zeros", Dtype::u8, p.n, zero_row_bytes(p)));
      specs.back().source = by_rows<std::uint8_t>(p, zero_row_bytes(p), &write_zeros);
    }
  }
  specs.push_back({.name = "y", .role = Role::output, .dtype = p.dtype, .shape = {p.m, p.n}});
  return specs;
}

MatmulTensors bind_matmul(const Problem& p, std::span<void* const> pointers) {
  MatmulTensors tensors{.x = pointers[0], .w = pointers[1], .y = pointers.back()};
  if (p.is_quantized()) tensors.scales = pointers[2];
  if (!p.symmetric) tensors.zeros = static_cast<const std::uint8_t*>(pointers[3]);
  return tensors;
}

}  // namespace inferometer
