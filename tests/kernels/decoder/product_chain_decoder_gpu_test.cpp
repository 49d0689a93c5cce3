// Who runs the chain of products, and how decoders take turns with it.
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "harness/measure/gpu_handles.hpp"
#include "harness/operator/cuda_check.cuh"
#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/chain_turn.hpp"
#include "kernels/decoder/forward_gpu.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "tests/kernels/decoder/chain_run.hpp"
#include "tests/kernels/decoder/decoder_runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/gpu.hpp"
#include "tests/support/guarded_memory.hpp"

namespace inferometer::test {
namespace {

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
      CHECK(sentence.has_value() != (on_sm90() && has_chain_blocks(s.hidden)));
    }
}

TEST_CASE("product chain: a decoder's steps of one token run it, others do not", "[decoder][product_chain][gpu]") {
  const auto device = gpu();
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
  const auto device = gpu();
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

TEST_CASE("chain turn: refused on a stream under capture, which goes on, and taken again behind it",
          "[decoder][product_chain][gpu]") {
  const auto device = gpu();
  cudaStream_t created = nullptr;
  INFEROMETER_CUDA_CHECK(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
  const CudaStream stream(created);
  { const decoder::ChainTurn before(stream.get()); }
  INFEROMETER_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  CHECK_THROWS_AS(decoder::ChainTurn(stream.get()), std::logic_error);
  cudaGraph_t captured = nullptr;
  INFEROMETER_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &captured));
  const CudaGraph graph(captured);
  std::size_t nodes = 1;
  INFEROMETER_CUDA_CHECK(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
  CHECK(nodes == 0);
  { const decoder::ChainTurn behind(stream.get()); }
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream.get()));
}

}  // namespace
}  // namespace inferometer::test
