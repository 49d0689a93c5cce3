// The chain of a layer's products for one token, against the equations in f64, and what holds between launches.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "harness/measure/gpu_handles.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/common/sm90_only.hpp"
#include "kernels/decoder/chain_turn.hpp"
#include "tests/kernels/decoder/chain_run.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/rel_l2.hpp"

namespace inferometer::test {
namespace {

using Vectors = ChainRun::Vectors;

// Activations and results are rounded to f16, an error of 2^-11 / sqrt(3) of themselves on average: twice on the way to
// q, k and v from an h that has one rounding less, and once where they are stored. 1e-3 is twice the sum of squares.
constexpr double kTolerance = 1e-3;

void check_vectors(const Vectors& got, const Vectors& expected, bool has_next = true) {
  CHECK(rel_l2(got[0], expected[0]) < kTolerance);
  if (has_next) CHECK(rel_l2(got[1], expected[1]) < kTolerance);
}

void check_layers(const ChainShape& shape, std::int64_t bits, std::int64_t layers) {
  if (!on_sm90() || !has_chain_blocks(shape.hidden)) return;
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

TEST_CASE("product chain: each run of a graph of all layers gives what the launches give",
          "[decoder][product_chain][gpu]") {
  if (!on_sm90()) return;
  for (const std::int64_t bits : {16, 4}) {
    ChainRun run({192, 320, 448, 576}, bits, 3);
    const auto launch = [&] {
      for (std::size_t layer = 0; layer < run.layers(); ++layer) run.launch(layer);
    };
    run.reset();
    for (int turn = 0; turn < 2; ++turn) launch();
    const Vectors launched = run.results();
    INFEROMETER_CUDA_CHECK(cudaStreamBeginCapture(run.stream(), cudaStreamCaptureModeThreadLocal));
    launch();
    cudaGraph_t captured = nullptr;
    INFEROMETER_CUDA_CHECK(cudaStreamEndCapture(run.stream(), &captured));
    const CudaGraph graph(captured);
    cudaGraphExec_t instance = nullptr;
    INFEROMETER_CUDA_CHECK(cudaGraphInstantiate(&instance, graph.get(), 0));
    const CudaGraphExec executable(instance);
    for (int again = 0; again < 2; ++again) {
      run.reset();
      for (int turn = 0; turn < 2; ++turn) {
        const decoder::ChainTurn of_graph(run.stream());
        INFEROMETER_CUDA_CHECK(cudaGraphLaunch(executable.get(), run.stream()));
      }
      CHECK(run.results() == launched);
    }
  }
}

}  // namespace
}  // namespace inferometer::test
