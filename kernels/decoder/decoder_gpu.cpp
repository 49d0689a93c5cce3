#include <cuda_runtime_api.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "harness/measure/gpu_handles.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/fields.hpp"
#include "kernels/decoder/chain_turn.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/forward_gpu.hpp"
#include "kernels/decoder/residual_norm.hpp"
#include "kernels/decoder/rope_append.hpp"
#include "kernels/decoder/step_inputs.hpp"
#include "kernels/decoder/step_kernels.hpp"

namespace inferometer {
namespace {

using decoder::ChainTurn;
using decoder::ForwardStep;
using decoder::StepArrays;
using decoder::StepPlan;
using decoder::StepSizes;

constexpr std::int64_t kMostTokens = 65535;  // the y dimension of a grid
constexpr std::int64_t kMostRows = 65504;    // the largest bucket of rows within it

struct FreeHost {
  void operator()(void* memory) const noexcept { INFEROMETER_CUDA_REPORT(cudaFreeHost(memory)); }
};
using PinnedMemory = std::unique_ptr<void, FreeHost>;

PinnedMemory make_pinned(std::size_t bytes) {
  void* memory = nullptr;
  INFEROMETER_CUDA_CHECK(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
  return PinnedMemory(memory);
}

CudaStream make_stream() {
  cudaStream_t stream = nullptr;
  INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return CudaStream(stream);
}

void require_in(const char* field, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most)
    throw ProblemError(field, std::string(field) + " must be " + std::to_string(least) + " to " + std::to_string(most) +
                                  ", got " + std::to_string(value));
}

void require_multiple(const char* field, std::int64_t value, std::int64_t of) {
  if (value % of != 0)
    throw ProblemError(field, std::string(field) + " must be a multiple of " + std::to_string(of) +
                                  " on the GPU, got " + std::to_string(value));
}

void require_bits(const char* field, std::int64_t bits) {
  if (bits != 16 && bits != 8 && bits != 4)
    throw ProblemError(field, std::string(field) + " must be 16, 8 or 4, got " + std::to_string(bits));
}

const DecoderConfig& checked(const DecoderShape& shape, const DecoderConfig& config) {
  check(shape);
  require_bits("weight_bits", config.weight_bits);
  require_bits("kv_bits", config.kv_bits);
  require_multiple("hidden", shape.hidden, 8);
  require_multiple("intermediate", shape.intermediate, 8);
  require_multiple("head_dim", shape.head_dim, 8);
  require_in("hidden", shape.hidden, 8, decoder::kMostHidden);
  require_in("head_dim", shape.head_dim, 8, decoder::kMostHeadDim);
  require_in("vocabulary", shape.vocabulary, 1, std::int64_t{1} << 18);  // next_token.cu adds up so many chances
  require_in("max_rows", config.max_rows, 1, kMostRows);
  require_in("max_tokens", config.max_tokens, 1, kMostTokens);
  require_in("max_length", config.max_length, 1, std::int64_t{1} << 30);
  require_in("block_size", config.block_size, 1, std::int64_t{1} << 30);
  // The attention counts rows of the cache in 32 bits, of tokens or, for codes, of tokens and heads.
  const std::int64_t rows = config.block_size * (config.kv_bits == 16 ? 1 : shape.kv_heads);
  require_in("num_blocks", config.num_blocks, 1, std::int64_t{std::numeric_limits<std::uint32_t>::max()} / rows - 1);
  if (config.prompt_attention == PromptAttention::materialized) {
    if (config.kv_bits != 16)
      throw ProblemError("kv_bits",
                         "kv_bits must be 16 for materialized attention, got " + std::to_string(config.kv_bits));
    require_in("max_length", config.max_length, 1, config.block_size);  // contiguous: a block holds a sequence
  }
  if (!(config.sampling.temperature >= 0))
    throw ProblemError("temperature",
                       "temperature must not be negative, got " + std::to_string(config.sampling.temperature));
  if (!(config.sampling.top_p > 0 && config.sampling.top_p <= 1))
    throw ProblemError("top_p", "top_p must be above 0 and at most 1, got " + std::to_string(config.sampling.top_p));
  return config;
}

StepSizes sizes_of(const DecoderShape& shape, const DecoderConfig& config) {
  const std::int64_t rows = decoder::row_bucket(config.max_rows);
  return {.tokens = std::max(config.max_tokens, rows),
          .rows = rows,
          .max_blocks = (config.max_length + config.block_size - 1) / config.block_size,
          .block_size = config.block_size,
          .num_blocks = config.num_blocks,
          .vocabulary = shape.vocabulary};
}

}  // namespace

struct CudaDecoder::State {
  State(const DecoderWeights& weights, const DecoderConfig& given, Stream on, Allocator& allocator)
      : shape(weights.shape()),
        config(checked(shape, given)),
        stream(on),
        sizes(sizes_of(shape, config)),
        forward(weights, config, sizes, stream, allocator),
        host_inputs(make_pinned(decoder::step_bytes(sizes, sizes.rows))),
        device_inputs(allocator.allocate(decoder::step_bytes(sizes, sizes.rows), "workspace")),
        host_next(make_pinned(static_cast<std::size_t>(sizes.rows) * sizeof(TokenId))) {
    INFEROMETER_CUDA_CHECK(cudaEventRecord(copied.get(), stream));
  }

  StepArrays host() const { return decoder::arrays_at(static_cast<std::byte*>(host_inputs.get()), sizes); }
  StepArrays device() const { return decoder::arrays_at(static_cast<std::byte*>(device_inputs.get()), sizes); }

  bool runs_as_graph() const { return config.graphs && plan.all_single() && plan.all_sample(); }
  ForwardStep padded_step() const { return ForwardStep::padded(plan, decoder::row_bucket(plan.rows)); }

  // The host's arrays are free to be filled again once they have been copied.
  void await_copy() const { INFEROMETER_CUDA_CHECK(cudaEventSynchronize(copied.get())); }

  void queue_inputs() {
    std::int64_t rows = plan.rows;
    if (runs_as_graph()) {
      rows = decoder::row_bucket(rows);
      decoder::pad_rows(plan, sizes, rows, host());
    }
    INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(device_inputs.get(), host_inputs.get(), decoder::step_bytes(sizes, rows),
                                           cudaMemcpyHostToDevice, stream));
    INFEROMETER_CUDA_CHECK(cudaEventRecord(copied.get(), stream));
  }

  void queue_copies(std::span<const BlockCopy> copies) const {
    const decoder::KvPoolShape& pool = forward.pool_shape();
    const auto copy = [&](std::int64_t at, std::int64_t block_bytes, std::int64_t layers, const BlockCopy& c) {
      const std::int64_t pitch = (pool.blocks + pool.spare_blocks) * block_bytes;
      std::byte* const first = forward.pool() + at;
      INFEROMETER_CUDA_CHECK(cudaMemcpy2DAsync(first + c.destination * block_bytes, static_cast<std::size_t>(pitch),
                                               first + c.source * block_bytes, static_cast<std::size_t>(pitch),
                                               static_cast<std::size_t>(block_bytes), static_cast<std::size_t>(layers),
                                               cudaMemcpyDeviceToDevice, stream));
    };
    for (const BlockCopy& c : copies) {
      copy(0, pool.block_bytes, 2 * pool.layers, c);  // K of all layers, and V of all layers behind them
      if (pool.block_scale_bytes > 0) copy(pool.scales_at(0), pool.block_scale_bytes, pool.layers, c);
    }
  }

  std::optional<ChainTurn> chain_turn(const ForwardStep& step) const {
    return forward.runs_chain(step) ? std::optional<ChainTurn>(std::in_place, stream) : std::nullopt;
  }

  // The first step of a bucket runs as it is, for kernels are loaded at their first launch, and is captured for the
  // next ones.
  void queue_graph() {
    const ForwardStep step = padded_step();
    const std::pair key{step.tokens, step.longest_single};
    const std::optional<ChainTurn> turn = chain_turn(step);
    if (const auto graph = graphs.find(key); graph != graphs.end()) {
      INFEROMETER_CUDA_CHECK(cudaGraphLaunch(graph->second.get(), stream));
      return;
    }
    forward.prepare(step);
    forward.run(step, device(), stream);
    graphs.emplace(key, capture(step));
  }

  CudaGraphExec capture(const ForwardStep& step) {
    INFEROMETER_CUDA_CHECK(cudaStreamBeginCapture(capture_stream.get(), cudaStreamCaptureModeThreadLocal));
    cudaGraph_t captured = nullptr;
    try {
      forward.run(step, device(), capture_stream.get());
    } catch (...) {
      INFEROMETER_CUDA_REPORT(cudaStreamEndCapture(capture_stream.get(), &captured));
      const CudaGraph unfinished(captured);
      throw;
    }
    INFEROMETER_CUDA_CHECK(cudaStreamEndCapture(capture_stream.get(), &captured));
    const CudaGraph graph(captured);
    cudaGraphExec_t executable = nullptr;
    INFEROMETER_CUDA_CHECK(cudaGraphInstantiate(&executable, graph.get(), 0));
    CudaGraphExec result(executable);
    INFEROMETER_CUDA_CHECK(cudaGraphUpload(executable, stream));
    return result;
  }

  DecoderShape shape;
  DecoderConfig config;
  Stream stream;
  StepSizes sizes;
  decoder::DecoderForward forward;
  PinnedMemory host_inputs;
  std::shared_ptr<void> device_inputs;
  PinnedMemory host_next;
  CudaEvent copied = make_event();
  CudaStream capture_stream = make_stream();
  std::map<std::pair<std::int64_t, std::int64_t>, CudaGraphExec> graphs;  // by rows and length
  StepPlan plan;                                                          // of the inputs on the device
  bool advanced = false;                                                  // the plan came from queue_advance
};

CudaDecoder::CudaDecoder(const DecoderWeights& weights, const DecoderConfig& config, Stream stream,
                         Allocator& allocator)
    : state_(std::make_unique<State>(weights, config, stream, allocator)) {}

CudaDecoder::~CudaDecoder() {
  if (state_) INFEROMETER_CUDA_REPORT(cudaStreamSynchronize(state_->stream));
}

const DecoderShape& CudaDecoder::shape() const { return state_->shape; }
const DecoderConfig& CudaDecoder::config() const { return state_->config; }

DecoderMemory CudaDecoder::memory() const {
  const State& s = *state_;
  return {.weights = s.forward.weight_bytes(),
          .kv_pool = static_cast<std::size_t>(s.forward.pool_shape().bytes()),
          .workspace = s.forward.workspace_bytes() + decoder::step_bytes(s.sizes, s.sizes.rows)};
}

void CudaDecoder::step(const StepBatch& batch, std::span<TokenId> next) {
  queue_batch(batch);
  queue_step();
  finish_step(next);
}

void CudaDecoder::queue_batch(const StepBatch& batch) {
  State& s = *state_;
  s.await_copy();
  s.plan = decoder::fill_step(batch, s.sizes, s.config.sampling.seed, s.host());
  s.advanced = false;
  s.queue_copies(batch.copies);
  s.queue_inputs();
}

void CudaDecoder::queue_step() {
  State& s = *state_;
  if (s.plan.rows == 0) throw std::logic_error("decoder: queue_step() without a batch");
  if (s.runs_as_graph()) return s.queue_graph();
  if (!s.plan.all_sample())
    INFEROMETER_CUDA_CHECK(
        cudaMemsetAsync(s.forward.next(), 0xff, static_cast<std::size_t>(s.plan.rows) * sizeof(TokenId), s.stream));
  const ForwardStep step = ForwardStep::of(s.plan);
  const std::optional<ChainTurn> turn = s.chain_turn(step);
  s.forward.run(step, s.device(), s.stream);
}

void CudaDecoder::finish_step(std::span<TokenId> next) {
  State& s = *state_;
  if (std::ssize(next) != s.plan.rows)
    throw std::invalid_argument("decoder: a step of " + std::to_string(s.plan.rows) +
                                " rows has as many next tokens, got " + std::to_string(next.size()));
  const std::size_t bytes = next.size() * sizeof(TokenId);
  INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(s.host_next.get(), s.forward.next(), bytes, cudaMemcpyDeviceToHost, s.stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(s.stream));
  const auto* const tokens = static_cast<const TokenId*>(s.host_next.get());
  for (const std::int64_t row : s.plan.places) next[static_cast<std::size_t>(row)] = tokens[row];
}

void CudaDecoder::queue_advance() {
  State& s = *state_;
  if (s.plan.rows == 0 || !s.plan.all_sample())
    throw std::logic_error("decoder: queue_advance() after a step in which not every row samples");
  if (s.plan.room < 1) throw std::logic_error("decoder: queue_advance() past the last slot of a row's table");
  if (s.advanced) {
    ++s.plan.longest_single;
    --s.plan.room;
  } else {
    s.await_copy();
    s.plan = decoder::advance_step(s.plan, s.sizes, s.host());
    s.queue_inputs();
  }
  const StepArrays inputs = s.device();
  decoder::launch_advance(
      {.next = s.forward.next(), .ids = inputs.ids, .positions = inputs.positions, .lengths = inputs.lengths},
      s.plan.rows, s.advanced ? 1 : 0, s.stream);
  s.advanced = true;
}

const TokenId* CudaDecoder::device_next() const { return state_->forward.next(); }

std::vector<float> CudaDecoder::logits() const {
  const State& s = *state_;
  const auto columns = static_cast<std::size_t>(s.shape.vocabulary);
  std::vector<std::uint16_t> bits(s.plan.places.size() * columns);
  INFEROMETER_CUDA_CHECK(cudaMemcpyAsync(bits.data(), s.forward.logits(), bits.size() * sizeof(bits[0]),
                                         cudaMemcpyDeviceToHost, s.stream));
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(s.stream));
  std::vector<float> logits(static_cast<std::size_t>(s.plan.rows) * columns);
  for (std::size_t sample = 0; sample < s.plan.places.size(); ++sample)
    std::transform(
        bits.begin() + static_cast<std::ptrdiff_t>(sample * columns),
        bits.begin() + static_cast<std::ptrdiff_t>((sample + 1) * columns),
        logits.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(s.plan.places[sample]) * columns),
        &f16_value);
  return logits;
}

std::span<std::byte> CudaDecoder::device_pool() const {
  return {state_->forward.pool(), static_cast<std::size_t>(state_->forward.pool_shape().bytes())};
}

}  // namespace inferometer
