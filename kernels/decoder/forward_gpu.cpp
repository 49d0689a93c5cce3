#include "kernels/decoder/forward_gpu.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>

#include "harness/operator/cuda_check.cuh"
#include "kernels/decoder/next_token.hpp"
#include "kernels/decoder/rope_append.hpp"
#include "kernels/decoder/step_kernels.hpp"
#include "kernels/decoder/swiglu.hpp"
#include "kernels/matmul/weight_only_variant.hpp"

namespace inferometer::decoder {
namespace {

template <class T>
T* as(const std::shared_ptr<void>& memory) {
  return static_cast<T*>(memory.get());
}

__half* halves(const std::shared_ptr<void>& memory) { return as<__half>(memory); }

// Products of more tokens end in Y: there a norm's kernel is a small part of a step.
constexpr std::int64_t kMostLateTokens = 32;
// Sums of squares that a residual end leaves of a token: of every 16 rows of W or, with few tokens and two blocks that
// share them, twice as many.
std::int64_t most_parts(std::int64_t hidden) { return (hidden + 15) / 16 * 2; }

ChainShape chain_shape(const DecoderShape& shape) {
  return {.hidden = static_cast<int>(shape.hidden),
          .attention = static_cast<int>(shape.q_size()),
          .intermediate = static_cast<int>(shape.intermediate),
          .qkv_rows = static_cast<int>(shape.q_size() + 2 * shape.kv_size())};
}

// What rope_append would read, for an attention that does its work.
decode::NewTokens new_tokens(const RopeAppendArgs& rope) {
  return {.qkv = rope.qkv,
          .norm = rope.norm,
          .bias = rope.bias,
          .q_gain = rope.q_gain,
          .k_gain = rope.k_gain,
          .turns = rope.turns,
          .eps = rope.eps};
}

// Where a chain finds a matrix.
const void* elements(const Matrix& matrix) {
  return matrix.bits == 16 ? matrix.weights.get() : packed_weights(matrix.weights).data();
}

std::shared_ptr<void> allocate_pool(const KvPoolShape& shape, Stream stream, Allocator& allocator) {
  auto pool = allocator.allocate(static_cast<std::size_t>(shape.bytes()), "kv_pool");
  INFEROMETER_CUDA_CHECK(cudaMemsetAsync(pool.get(), 0, static_cast<std::size_t>(shape.bytes()), stream));
  return pool;
}

}  // namespace

ForwardStep ForwardStep::of(const StepPlan& plan) {
  return {.tokens = plan.tokens,
          .single_rows = plan.single_rows,
          .longest_single = plan.longest_single,
          .samples = std::ssize(plan.places),
          .chunks = plan.chunks() > 0 ? &plan : nullptr};
}

ForwardStep ForwardStep::padded(const StepPlan& plan, std::int64_t rows) {
  return {.tokens = rows, .single_rows = rows, .longest_single = length_bucket(plan.longest_single), .samples = rows};
}

DecoderForward::DecoderForward(const DecoderWeights& weights, const DecoderConfig& config, const StepSizes& sizes,
                               Stream stream, Allocator& allocator)
    : shape_(weights.shape()),
      config_(config),
      sizes_(sizes),
      stream_(stream),
      allocator_(allocator),
      pool_shape_(kv_pool_shape(shape_, config.kv_bits, config.block_size, config.num_blocks)),
      pool_(allocate_pool(pool_shape_, stream, allocator)),
      weights_(load_weights(weights, config.weight_bits, stream, allocator)),
      products_(stream, allocator),
      attention_(shape_, pool_shape_, pool(), config, sizes, stream, allocator) {
  const auto half = [&](std::int64_t rows, std::int64_t columns) { return scratch(rows * columns, sizeof(__half)); };
  const std::int64_t tokens = sizes.tokens;
  if (const ChainShape chain = chain_shape(shape_);
      !chain_unsupported(chain, config.weight_bits, shape_.layers).has_value())
    chain_.emplace(chain, config.weight_bits, shape_.layers, static_cast<float>(shape_.norm_eps), stream, allocator);
  residual_ = scratch(tokens * shape_.hidden, sizeof(float));
  normed_ = half(tokens, shape_.hidden);
  delta_ = half(tokens, shape_.hidden);
  squares_ = scratch(kMostLateTokens * most_parts(shape_.hidden), sizeof(float));
  for (std::shared_ptr<void>& inverse : inverse_) inverse = scratch(kMostLateTokens, sizeof(float));
  qkv_ = half(tokens, shape_.q_size() + 2 * shape_.kv_size());
  q_ = half(tokens, shape_.q_size());
  attended_ = half(tokens, shape_.q_size());
  lse_ = scratch(tokens * shape_.q_heads, sizeof(float));
  if (!products_.has_gated()) gate_up_ = half(tokens, 2 * shape_.intermediate);
  active_ = half(tokens, shape_.intermediate);
  last_ = half(sizes.rows, shape_.hidden);
  logits_ = half(sizes.rows, shape_.vocabulary);
  next_ = scratch(sizes.rows, sizeof(TokenId));
  if (config.kv_bits != 16) {
    k_new_ = half(tokens, shape_.kv_size());
    v_new_ = half(tokens, shape_.kv_size());
    blocks_ = scratch(tokens, sizeof(std::int32_t));
    slots_ = scratch(tokens, sizeof(std::int32_t));
  }
  upload_turns(sizes.max_blocks * sizes.block_size);
}

std::shared_ptr<void> DecoderForward::scratch(std::int64_t elements, std::size_t element_bytes) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * element_bytes;
  workspace_bytes_ += bytes;
  auto memory = allocator_.allocate(bytes, "workspace");
  INFEROMETER_CUDA_CHECK(cudaMemsetAsync(memory.get(), 0, bytes, stream_));
  return memory;
}

// In f64: an f32 angle of position 10^5 would be off by 4e-3.
void DecoderForward::upload_turns(std::int64_t positions) {
  const std::int64_t pairs = shape_.head_dim / 2;
  std::vector<float2> turns(static_cast<std::size_t>(positions * pairs));
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const double frequency =
        std::pow(shape_.rope_theta, -2.0 * static_cast<double>(pair) / static_cast<double>(shape_.head_dim));
    for (std::int64_t position = 0; position < positions; ++position) {
      const double angle = static_cast<double>(position) * frequency;
      turns[static_cast<std::size_t>(position * pairs + pair)] = {static_cast<float>(std::cos(angle)),
                                                                  static_cast<float>(std::sin(angle))};
    }
  }
  turns_ = scratch(positions * pairs, sizeof(float2));
  INFEROMETER_CUDA_CHECK(
      cudaMemcpyAsync(turns_.get(), turns.data(), turns.size() * sizeof(float2), cudaMemcpyHostToDevice, stream_));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream_));  // `turns` goes
}

bool DecoderForward::has_late_norms(std::int64_t tokens) {
  if (tokens > kMostLateTokens || (chain_.has_value() && tokens == 1)) return false;
  const auto [found, is_new] = late_.emplace(tokens, false);
  if (is_new) {
    const LayerWeights& layer = weights_.layers.front();  // all are of one size
    found->second = products_.has_late_norm(layer.o, tokens) && products_.has_late_norm(layer.gate_up, tokens) &&
                    products_.has_late_norm(layer.down, tokens);
  }
  return found->second;
}

LateNorm DecoderForward::late_norm(const Matrix& in_front, std::int64_t tokens, int number) {
  return {.squares = as<float>(squares_),
          .scale = as<float>(inverse_[1 - number]),
          .inverse = as<float>(inverse_[number]),
          .parts = products_.residual_parts(in_front, tokens),
          .hidden = static_cast<int>(shape_.hidden),
          .eps = static_cast<float>(shape_.norm_eps)};
}

ResidualEnd DecoderForward::residual_end(const std::shared_ptr<void>& gain, int number) const {
  return {.h = as<float>(residual_),
          .gain = halves(gain),
          .scale = as<float>(inverse_[1 - number]),
          .x = halves(normed_),
          .squares = as<float>(squares_)};
}

void DecoderForward::prepare(const ForwardStep& step) {
  if (step.samples > 0) products_.prepare(weights_.head, step.samples);
  if (step.single_rows > 0) attention_.prepare_single(step.single_rows, step.longest_single);
  if (runs_chain(step)) {
    products_.prepare(weights_.layers.front().qkv, step.tokens);  // the others are the chain's
    return;
  }
  const bool late = has_late_norms(step.tokens);
  for (const LayerWeights& layer : weights_.layers) {
    products_.prepare(layer.qkv, step.tokens);
    for (const Matrix* matrix : {&layer.o, &layer.down}) {
      if (late) {
        products_.prepare_residual(*matrix, step.tokens);
      } else {
        products_.prepare(*matrix, step.tokens);
      }
    }
    if (products_.has_gated()) {
      products_.prepare_gated(layer.gate_up, step.tokens);
    } else {
      products_.prepare(layer.gate_up, step.tokens);
    }
  }
}

Norm DecoderForward::norm(const std::shared_ptr<void>& gain) const {
  return {.gain = halves(gain),
          .hidden = static_cast<std::int32_t>(shape_.hidden),
          .eps = static_cast<float>(shape_.norm_eps)};
}

void DecoderForward::run(const ForwardStep& step, const StepArrays& inputs, Stream stream) {
  float* const residual = as<float>(residual_);
  const bool late = has_late_norms(step.tokens);
  const bool chained = runs_chain(step);
  Norm first = norm(weights_.layers.front().attention_norm);
  if (late || chained) first.inverse = as<float>(inverse_[0]);
  launch_embed_norm(inputs.ids, halves(weights_.embedding), residual, first, halves(normed_), step.tokens, stream);
  if (config_.kv_bits != 16)
    launch_place({.positions = inputs.positions,
                  .rows = inputs.token_rows,
                  .table = inputs.table,
                  .max_blocks = static_cast<std::int32_t>(sizes_.max_blocks),
                  .block_size = static_cast<std::int32_t>(sizes_.block_size),
                  .spare_block = static_cast<std::int32_t>(pool_shape_.blocks),
                  .blocks = as<std::int32_t>(blocks_),
                  .slots = as<std::int32_t>(slots_)},
                 step.tokens, stream);
  try {
    run_layers(step, inputs, stream);
  } catch (...) {
    if (chained) chain_->reset(stream);
    throw;
  }
  if (step.samples == 0) return;
  launch_gather_norm(inputs.sample_tokens, late || chained ? nullptr : halves(delta_), residual,
                     norm(weights_.final_norm), halves(last_), step.samples, stream);
  run_head(step, inputs, stream);
}

void DecoderForward::run_layers(const ForwardStep& step, const StepArrays& inputs, Stream stream) {
  float* const residual = as<float>(residual_);
  const bool late = has_late_norms(step.tokens);
  const bool chained = runs_chain(step);
  for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
    const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
    if (layer > 0 && !late && !chained)
      launch_add_norm(halves(delta_), residual, norm(weights.attention_norm), halves(normed_), step.tokens, stream);
    if (layer == 0 || !chained) products_.run(weights.qkv, normed_.get(), qkv_.get(), step.tokens, stream);
    run_attention(step, layer, inputs, stream);
    if (chained) {
      run_chain(layer, stream);
      continue;
    }
    if (late) {
      products_.run_residual(weights.o, attended_.get(), residual_end(weights.mlp_norm, 1), step.tokens, stream);
    } else {
      products_.run(weights.o, attended_.get(), delta_.get(), step.tokens, stream);
      launch_add_norm(halves(delta_), residual, norm(weights.mlp_norm), halves(normed_), step.tokens, stream);
    }
    run_mlp(step, layer, stream);
  }
}

void DecoderForward::run_attention(const ForwardStep& step, std::int64_t layer, const StepArrays& inputs,
                                   Stream stream) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const bool quantized = config_.kv_bits != 16;
  RopeAppendArgs rope{.qkv = halves(qkv_),
                      .bias = halves(weights.qkv_bias),
                      .q_gain = halves(weights.q_norm),
                      .k_gain = halves(weights.k_norm),
                      .turns = as<float2>(turns_),
                      .positions = inputs.positions,
                      .q = halves(q_),
                      .tokens = static_cast<std::int32_t>(step.tokens),
                      .q_heads = static_cast<std::int32_t>(shape_.q_heads),
                      .kv_heads = static_cast<std::int32_t>(shape_.kv_heads),
                      .head_dim = static_cast<std::int32_t>(shape_.head_dim),
                      .eps = static_cast<float>(shape_.norm_eps)};
  const bool late = has_late_norms(step.tokens);
  if (late && layer > 0)  // the first layer's norm came with the embedding
    rope.norm = late_norm(weights_.layers[static_cast<std::size_t>(layer - 1)].down, step.tokens, 0);
  if (quantized) {
    rope.to = {.k = halves(k_new_), .v = halves(v_new_)};
  } else {
    rope.to = {.k = reinterpret_cast<__half*>(pool() + pool_shape_.k_at(layer)),
               .v = reinterpret_cast<__half*>(pool() + pool_shape_.v_at(layer)),
               .rows = inputs.token_rows,
               .table = inputs.table,
               .max_blocks = static_cast<std::int32_t>(sizes_.max_blocks),
               .block_size = FastDivide(static_cast<std::uint32_t>(sizes_.block_size))};
  }
  if (step.single_rows == step.tokens && attention_.takes_new()) {
    attention_.run_new(step.single_rows, step.longest_single, layer, inputs, new_tokens(rope),
                       {.o = attended_.get(), .lse = as<float>(lse_)}, stream);
    return;
  }
  launch_rope_append(rope, stream);
  if (quantized)
    attention_.append(k_new_.get(), v_new_.get(), as<std::int32_t>(blocks_), as<std::int32_t>(slots_), step.tokens,
                      layer, stream);
  const AttentionTensors singles{.q = q_.get(), .o = attended_.get(), .lse = as<float>(lse_)};
  if (step.single_rows > 0)
    attention_.run_single(step.single_rows, step.longest_single, layer, inputs, singles, stream);
  if (step.chunks != nullptr)
    attention_.run_chunks(*step.chunks, layer, inputs,
                          {.q = halves(q_) + step.single_rows * shape_.q_size(),
                           .o = halves(attended_) + step.single_rows * shape_.q_size(),
                           .lse = as<float>(lse_) + step.single_rows * shape_.q_heads},
                          stream);
}

void DecoderForward::run_mlp(const ForwardStep& step, std::int64_t layer, Stream stream) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t tokens = step.tokens;
  if (has_late_norms(tokens)) {
    const bool is_last = layer + 1 == shape_.layers;
    const std::shared_ptr<void>& next_gain =
        is_last ? weights_.final_norm : weights_.layers[static_cast<std::size_t>(layer + 1)].attention_norm;
    products_.run_gated(weights.gate_up, normed_.get(), active_.get(), tokens, late_norm(weights.o, tokens, 1), stream);
    products_.run_residual(weights.down, active_.get(), residual_end(next_gain, 0), tokens, stream);
    return;
  }
  if (products_.has_gated()) {
    products_.run_gated(weights.gate_up, normed_.get(), active_.get(), tokens, {}, stream);
  } else {
    products_.run(weights.gate_up, normed_.get(), gate_up_.get(), tokens, stream);
    launch_swiglu(halves(gate_up_), halves(active_), tokens, shape_.intermediate, stream);
  }
  products_.run(weights.down, active_.get(), delta_.get(), tokens, stream);
}

// All products behind the attention of `layer` up to the q, k and v of the next one.
void DecoderForward::run_chain(std::int64_t layer, Stream stream) {
  const auto number = static_cast<std::size_t>(layer);
  const LayerWeights& weights = weights_.layers[number];
  ChainLayer chain{.weights = {elements(weights.o), elements(weights.gate_up), elements(weights.down), nullptr},
                   .mlp_gain = halves(weights.mlp_norm),
                   .next_gain = nullptr};
  if (number + 1 < weights_.layers.size()) {
    const LayerWeights& next = weights_.layers[number + 1];
    chain.weights[static_cast<int>(ChainProduct::next_qkv)] = elements(next.qkv);
    chain.next_gain = halves(next.attention_norm);
  }
  chain_->run(layer, chain,
              {.attention = halves(attended_),
               .h = as<float>(residual_),
               .inverse = as<float>(inverse_[0]),
               .qkv = halves(qkv_)},
              stream);
}

void DecoderForward::run_head(const ForwardStep& step, const StepArrays& inputs, Stream stream) {
  products_.run(weights_.head, last_.get(), logits_.get(), step.samples, stream);
  const NextTokenArgs args{.logits = logits(),
                           .vocabulary = static_cast<std::int32_t>(shape_.vocabulary),
                           .rows = static_cast<std::int32_t>(step.samples),
                           .places = inputs.sample_places,
                           .next = next()};
  if (config_.sampling.temperature == 0) return launch_greedy(args, stream);
  launch_top_p(args,
               {.inverse_temperature = static_cast<float>(1 / config_.sampling.temperature),
                .top_p = config_.sampling.top_p,
                .keys = inputs.keys,
                .tokens = inputs.sample_tokens,
                .positions = inputs.positions},
               stream);
}

}  // namespace inferometer::decoder
