// A layer's chain of products for one token, and what it makes of its vectors by the equations in f64.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/generate.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/matmul/weight_only_variant.hpp"
#include "reference/decoder/quantized_rows.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {

using decoder::ChainLayer;
using decoder::ChainProduct;
using decoder::ChainShape;
using decoder::kChainProducts;
using decoder::ProductChain;

// Whether a GPU of compute capability 9.0 has the multiprocessors for it: each keeps 64 rows of h.
inline bool has_chain_blocks(std::int64_t hidden) { return hidden <= 64 * current_gpu_limits().sm_count; }

// Layers of seeded weights in guarded memory, and the vectors of a token.
class ChainRun {
 public:
  // What a launch leaves: h and qkv.
  using Vectors = std::vector<std::vector<double>>;

  ChainRun(const ChainShape& shape, std::int64_t bits, std::int64_t layers)
      : shape_(shape), bits_(bits), device_(gpu()), memory_(*device_) {
    for (std::int64_t layer = 0; layer < layers; ++layer) {
      mlp_gains_.push_back(normal(shape.hidden, 0.3));
      next_gains_.push_back(normal(shape.hidden, 0.3));
      for (int p = 0; p < kChainProducts; ++p) {
        const std::int64_t rows = chain_rows(shape, static_cast<ChainProduct>(p));
        const std::int64_t k = chain_k(shape, static_cast<ChainProduct>(p));
        const auto dense = normal(rows * k, 1 / std::sqrt(static_cast<double>(k)));
        dense_.push_back(dense);
        weights_.push_back(bits == 16 ? dense
                                      : decoder::quantize_matrix(dense.get(), rows, k, bits, stream(), memory_));
      }
    }
    h_ = memory_.allocate(static_cast<std::size_t>(shape.hidden) * 4, "h");
    inverse_ = memory_.allocate(sizeof(float), "inverse");
    qkv_ = normal(shape.qkv_rows, 1);
    attention_ = normal(shape.attention, 1);
    chain_.emplace(shape, bits, layers, kNormEps, stream(), memory_);
  }
  ~ChainRun() { CHECK(memory_.violations() == std::vector<std::string>()); }
  ChainRun(const ChainRun&) = delete;
  ChainRun& operator=(const ChainRun&) = delete;

  Stream stream() const { return device_->launch().stream; }
  std::size_t layers() const { return mlp_gains_.size(); }
  const ProductChain& chain() const { return *chain_; }

  // The token's h as it is at first, with an rms of about one.
  void reset() {
    const float inverse = 1;
    device_->synchronize();
    device_->copy_from_host(inverse_.get(), &inverse, sizeof(inverse));
    launch_fill_normal(Dtype::f32, h_.get(), shape_.hidden, stream_key(5, 5), normal_scale(1), 0, stream());
  }

  void set_h(std::int64_t row, std::uint32_t bits) {
    device_->synchronize();
    device_->copy_from_host(static_cast<float*>(h_.get()) + row, &bits, sizeof(bits));
  }

  // One launch; without `next` as the last layer has it.
  void launch(std::size_t layer, bool next = true) const {
    ChainLayer chain{};
    for (std::size_t p = 0; p < kChainProducts; ++p) {
      const std::shared_ptr<void>& weights = weights_[layer * kChainProducts + p];
      chain.weights[p] = bits_ == 16 ? weights.get() : packed_weights(weights).data();
    }
    if (!next) chain.weights[kChainProducts - 1] = nullptr;
    chain.mlp_gain = static_cast<const __half*>(mlp_gains_[layer].get());
    chain.next_gain = next ? static_cast<const __half*>(next_gains_[layer].get()) : nullptr;
    chain_->run(static_cast<std::int64_t>(layer), chain,
                {.attention = static_cast<const __half*>(attention_.get()),
                 .h = static_cast<float*>(h_.get()),
                 .inverse = static_cast<float*>(inverse_.get()),
                 .qkv = static_cast<__half*>(qkv_.get())},
                stream());
  }

  Vectors results() const {
    std::vector<float> h(static_cast<std::size_t>(shape_.hidden));
    device_->synchronize();
    device_->copy_to_host(h.data(), h_.get(), h.size() * 4);
    return {{h.begin(), h.end()}, halves(qkv_, shape_.qkv_rows)};
  }

  // What a launch makes of h, in f64; activations are rounded where the kernel keeps them as f16. `swapped`: as if the
  // gate were the up projection.
  Vectors expected(std::size_t layer, std::vector<double> h, bool swapped = false) const {
    const auto add = [&](const std::vector<double>& delta) {
      for (std::size_t i = 0; i < h.size(); ++i) h[i] += delta[i];
    };
    add(product(layer, ChainProduct::attention_out, halves(attention_, shape_.attention)));
    const auto gate_up = product(layer, ChainProduct::gate_up, normed(h, mlp_gains_[layer]));
    std::vector<double> active(static_cast<std::size_t>(shape_.intermediate));
    for (std::size_t f = 0; f < active.size(); ++f) {
      const std::size_t row = f / 8 * 16 + f % 8;
      const double gate = gate_up[swapped ? row + 8 : row];
      active[f] = rounded_to_half(gate / (1 + std::exp(-gate)) * gate_up[swapped ? row : row + 8]);
    }
    add(product(layer, ChainProduct::down, active));
    return {h, product(layer, ChainProduct::next_qkv, normed(h, next_gains_[layer]))};
  }

 private:
  static constexpr float kNormEps = 1e-5F;

  static double rounded_to_half(double value) { return f16_value(f16_bits(static_cast<float>(value))); }

  std::shared_ptr<void> normal(std::int64_t elements, double stddev) {
    auto memory = memory_.allocate(static_cast<std::size_t>(elements) * 2, "test");
    launch_fill_normal(Dtype::f16, memory.get(), elements, stream_key(3, seed_++), normal_scale(stddev), 0, stream());
    return memory;
  }

  std::vector<double> halves(const std::shared_ptr<void>& memory, std::int64_t elements) const {
    std::vector<std::uint16_t> bits(static_cast<std::size_t>(elements));
    device_->synchronize();
    device_->copy_to_host(bits.data(), memory.get(), bits.size() * 2);
    std::vector<double> values(bits.size());
    std::transform(bits.begin(), bits.end(), values.begin(), &f16_value);
    return values;
  }

  std::vector<double> normed(const std::vector<double>& h, const std::shared_ptr<void>& gains) const {
    const auto gain = halves(gains, shape_.hidden);
    double squares = 0;
    for (const double value : h) squares += value * value;
    std::vector<double> x(h.size());
    for (std::size_t i = 0; i < h.size(); ++i)
      x[i] = rounded_to_half(h[i] / std::sqrt(squares / static_cast<double>(h.size()) + kNormEps) * gain[i]);
    return x;
  }

  std::vector<double> product(std::size_t layer, ChainProduct which, const std::vector<double>& x) const {
    const auto rows = static_cast<std::size_t>(chain_rows(shape_, which));
    const auto k = static_cast<std::size_t>(chain_k(shape_, which));
    std::vector<std::uint16_t> w(rows * k);
    device_->synchronize();
    device_->copy_to_host(w.data(), dense_[layer * kChainProducts + static_cast<std::size_t>(which)].get(),
                          w.size() * 2);
    std::vector<double> y(rows);
    std::vector<float> row(k);
    for (std::size_t r = 0; r < rows; ++r) {
      std::transform(w.begin() + static_cast<std::ptrdiff_t>(r * k),
                     w.begin() + static_cast<std::ptrdiff_t>((r + 1) * k), row.begin(), &f16_value);
      quantize_weight_row(bits_, row);
      for (std::size_t i = 0; i < k; ++i) y[r] += static_cast<double>(row[i]) * x[i];
    }
    return y;
  }

  ChainShape shape_;
  std::int64_t bits_;
  std::unique_ptr<Device> device_;
  GuardedMemory memory_;
  std::uint64_t seed_ = 0;
  std::vector<std::shared_ptr<void>> dense_;  // before they were quantised
  std::vector<std::shared_ptr<void>> weights_;
  std::vector<std::shared_ptr<void>> mlp_gains_;
  std::vector<std::shared_ptr<void>> next_gains_;
  std::shared_ptr<void> h_;
  std::shared_ptr<void> inverse_;
  std::shared_ptr<void> qkv_;
  std::shared_ptr<void> attention_;
  std::optional<ProductChain> chain_;
};

}  // namespace inferometer::test
