// The chain of a layer's products for one token, against the equations in f64.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/common/gpu_limits.hpp"
#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/forward_gpu.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/matmul/weight_only_variant.hpp"
#include "reference/decoder/quantized_rows.hpp"
#include "tests/kernels/decoder/decoder_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {
namespace {

using decoder::ChainLayer;
using decoder::ChainProduct;
using decoder::ChainShape;
using decoder::kChainProducts;
using decoder::ProductChain;

constexpr float kEps = 1e-5F;

// What a launch leaves: h and qkv.
using Vectors = std::vector<std::vector<double>>;

double rel_l2(const std::vector<double>& got, const std::vector<double>& expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    error += std::pow(got[i] - expected[i], 2);
    norm += std::pow(expected[i], 2);
  }
  return std::sqrt(error / norm);
}

double rounded(double value) { return f16_value(f16_bits(static_cast<float>(value))); }

// Layers of seeded weights in guarded memory, and the vectors of a token.
class ChainRun {
 public:
  ChainRun(const ChainShape& shape, std::int64_t bits, std::int64_t layers)
      : shape_(shape), bits_(bits), device_(decoder_device()), memory_(*device_) {
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
    chain_.emplace(shape, bits, layers, kEps, stream(), memory_);
  }
  ~ChainRun() { CHECK(memory_.violations() == std::vector<std::string>()); }
  ChainRun(const ChainRun&) = delete;
  ChainRun& operator=(const ChainRun&) = delete;

  Stream stream() const { return device_->launch().stream; }
  Device& device() { return *device_; }
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
      active[f] = rounded(gate / (1 + std::exp(-gate)) * gate_up[swapped ? row : row + 8]);
    }
    add(product(layer, ChainProduct::down, active));
    return {h, product(layer, ChainProduct::next_qkv, normed(h, next_gains_[layer]))};
  }

 private:
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
      x[i] = rounded(h[i] / std::sqrt(squares / static_cast<double>(h.size()) + kEps) * gain[i]);
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

// Activations and results are rounded to f16, an error of 2^-11 / sqrt(3) of themselves on average: twice on the way to
// q, k and v from an h that has one rounding less, and once where they are stored. 1e-3 is twice the sum of squares.
constexpr double kTolerance = 1e-3;

void check_vectors(const Vectors& got, const Vectors& expected, bool has_next = true) {
  CHECK(rel_l2(got[0], expected[0]) < kTolerance);
  if (has_next) CHECK(rel_l2(got[1], expected[1]) < kTolerance);
}

// Whether a GPU of compute capability 9.0 has the multiprocessors for it: each keeps 64 rows of h.
bool has_blocks_for(std::int64_t hidden) { return hidden <= 64 * current_gpu_limits().sm_count; }

void check_layers(const ChainShape& shape, std::int64_t bits, std::int64_t layers) {
  if (!on_sm90() || !has_blocks_for(shape.hidden)) return;
  INFO("hidden " << shape.hidden << ", attention " << shape.attention << ", intermediate " << shape.intermediate
                 << ", rows of q, k and v " << shape.qkv_rows << ", bits " << bits);
  ChainRun run(shape, bits, layers);
  run.reset();
  for (std::size_t layer = 0; layer < run.layers(); ++layer) {
    const Vectors before = run.results();
    const bool has_next = layer + 1 < run.layers();
    run.launch(layer, has_next);
    const Vectors got = run.results();
    check_vectors(got, run.expected(layer, before[0]), has_next);
    if (!has_next) CHECK(got[1] == before[1]);
  }
}

// 64: most blocks have nothing to do. k of 960, 1088 and 2752 ends within a stage of the ring.
const std::vector<ChainShape> kShapes{{64, 64, 64, 64},        {256, 256, 512, 512},    {192, 320, 448, 576},
                                      {1088, 960, 2752, 1152}, {3584, 512, 1984, 4608}, {8192, 64, 128, 64}};

TEST_CASE("product chain: weights of 16 bits", "[decoder][product_chain][gpu]") {
  for (const ChainShape& shape : kShapes) check_layers(shape, 16, 3);
}

TEST_CASE("product chain: weights of 4 bits", "[decoder][product_chain][gpu]") {
  for (const ChainShape& shape : kShapes) check_layers(shape, 4, 3);
}

TEST_CASE("product chain: layers of Llama 3 8B", "[decoder][product_chain][gpu][large]") {
  check_layers({4096, 4096, 14336, 6144}, 16, 2);
  check_layers({4096, 4096, 14336, 6144}, 4, 2);
}

TEST_CASE("product chain: the comparison fails for a gate in the place of the up projection",
          "[decoder][product_chain][gpu]") {
  if (!on_sm90()) return;
  ChainRun run({256, 256, 512, 512}, 16, 2);
  run.reset();
  const Vectors before = run.results();
  run.launch(0);
  const Vectors expected = run.expected(0, before[0], true);
  // silu(g) u and silu(u) g differ by g u (sigmoid(g) - sigmoid(u)), a part of what the MLP adds to an h many times as
  // large: 8e-3 and 9e-3 of h and of q, k and v here, eight times what the comparison allows.
  CHECK(rel_l2(run.results()[0], expected[0]) > 5 * kTolerance);
  CHECK(rel_l2(run.results()[1], expected[1]) > 5 * kTolerance);
}

TEST_CASE("product chain: after a reset launches begin again, wherever they ended", "[decoder][product_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4}) {
    ChainRun run({192, 320, 448, 576}, bits, 3);
    const auto token = [&] {
      run.reset();
      for (std::size_t layer = 0; layer < run.layers(); ++layer) run.launch(layer);
      return run.results();
    };
    const Vectors whole = token();
    for (std::size_t ended = 1; ended < run.layers(); ++ended) {
      run.reset();
      for (std::size_t layer = 0; layer < ended; ++layer) run.launch(layer);
      run.chain().reset(run.stream());
      CHECK(token() == whole);
    }
  }
}

TEST_CASE("product chain: a NaN whose bits are those of an element that was not sent goes through all products",
          "[decoder][product_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4}) {
    ChainRun run({192, 320, 448, 576}, bits, 2);
    run.reset();
    run.set_h(17, decoder::kUnsentFloat);
    run.launch(0);
    for (const std::vector<double>& vector : run.results())
      CHECK(std::all_of(vector.begin(), vector.end(), [](double value) { return std::isnan(value); }));
  }
}

TEST_CASE("product chain: the same bits in every launch, beside other work too", "[decoder][product_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4}) {
    ChainRun run({1088, 960, 2752, 1152}, bits, 3);
    cudaStream_t created = nullptr;
    INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
    const CudaStream other(created);
    constexpr std::int64_t kElements = std::int64_t{1} << 22;
    const CudaMemory filled = make_device_memory(kElements * 2);
    const auto token = [&] {
      run.reset();
      for (int turn = 0; turn < 10; ++turn)
        for (std::size_t layer = 0; layer < run.layers(); ++layer) run.launch(layer);
    };
    token();
    const Vectors once = run.results();
    token();
    CHECK(run.results() == once);
    for (int i = 0; i < 50; ++i)
      launch_fill_normal(Dtype::f16, filled.get(), kElements, 1, normal_scale(1), 0, other.get());
    token();
    CHECK(run.results() == once);
  }
}

TEST_CASE("product chain: decoders of these shapes have it on compute capability 9.0",
          "[decoder][product_chain][gpu]") {
  for (const char* const name :
       {"tinyllama", "llama2_7b", "llama3_8b", "llama3_70b", "mistral_7b", "qwen25_7b", "qwen3_8b"})
    for (const std::int64_t bits : {16, 4}) {
      const DecoderShape& s = decoder_shape(name);
      const auto sentence =
          decoder::chain_unsupported({static_cast<int>(s.hidden), static_cast<int>(s.q_size()),
                                      static_cast<int>(s.intermediate), static_cast<int>(s.q_size() + 2 * s.kv_size())},
                                     bits, s.layers);
      INFO(name << ", " << bits << " bits: " << sentence.value_or(""));
      CHECK(sentence.has_value() != (on_sm90() && has_blocks_for(s.hidden)));
    }
}

TEST_CASE("product chain: a decoder's steps of one token run it, others do not", "[decoder][product_chain][gpu]") {
  const auto device = decoder_device();
  GuardedMemory memory(*device);
  const SeededWeights weights(decoder_shape("tiny"), 35);
  for (const std::int64_t bits : {16, 8, 4}) {
    INFO("weights of " << bits << " bits");
    const DecoderConfig config = small_config(bits, 16);
    const decoder::StepSizes sizes{.tokens = 16,
                                   .rows = 8,
                                   .max_blocks = 8,
                                   .block_size = config.block_size,
                                   .num_blocks = config.num_blocks,
                                   .vocabulary = weights.shape().vocabulary};
    const decoder::DecoderForward forward(weights, config, sizes, device->launch().stream, memory);
    CHECK(forward.runs_chain({.tokens = 1}) == (on_sm90() && bits != 8));
    CHECK_FALSE(forward.runs_chain({.tokens = 2}));
    device->synchronize();
  }
}

TEST_CASE("product chain: what it cannot do is refused in a sentence", "[decoder][product_chain][gpu]") {
  const auto device = decoder_device();
  if (!on_sm90()) return;
  CHECK(decoder::chain_unsupported({256, 256, 512, 512}, 16, 1) == "layers must be at least 2, got 1");
  CHECK(decoder::chain_unsupported({256, 256, 512, 512}, 8, 2) == "weights must have 16 or 4 bits, got 8");
  CHECK(decoder::chain_unsupported({256, 256, 520, 512}, 16, 2) == "intermediate must be a multiple of 64, got 520");
  CHECK(decoder::chain_unsupported({12288, 12288, 28672, 18432}, 16, 2)->find("hidden must be at most") == 0);
  CHECK(decoder::chain_unsupported({4096, 4096, 131072, 6144}, 16, 2) ==
        "the longest vector leaves no room in shared memory for weights");
}

// Their kernels could not be resident at once: each needs all multiprocessors.
TEST_CASE("decoder: two on streams of their own give the tokens that each gives alone",
          "[decoder][product_chain][gpu]") {
  const SeededWeights weights(decoder_shape("tiny"), 35);
  const Tokens start = random_tokens(33, 512, 100);
  constexpr int kSteps = 60;
  const auto begin = [&](DecoderRun& run) {
    StepBatch batch;
    batch.rows = {run.row(0, start, 0, std::ssize(start))};
    run.decoder().queue_batch(batch);
    run.decoder().queue_step();
  };
  const auto advance = [](DecoderRun& run) {
    run.decoder().queue_advance();
    run.decoder().queue_step();
  };
  const auto last_of = [](DecoderRun& run) {
    Tokens last(1);
    run.decoder().finish_step(last);
    return std::pair(last.front(), run.decoder().logits());
  };
  for (const bool graphs : {true, false}) {
    DecoderConfig config = small_config(16, 16);
    config.graphs = graphs;
    DecoderRun first(weights, config, 1);
    DecoderRun second(weights, config, 1);
    begin(first);
    for (int i = 0; i < kSteps; ++i) advance(first);
    const auto alone = last_of(first);
    begin(first);
    begin(second);
    for (int i = 0; i < kSteps; ++i) {
      advance(first);
      advance(second);
    }
    CHECK(last_of(first) == alone);
    CHECK(last_of(second) == alone);
  }
}

}  // namespace
}  // namespace inferometer::test
