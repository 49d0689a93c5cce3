// The chain of products alone, of Llama-3-8B's 32 layers with weights of four in turn: chain_lab WEIGHT_BITS.
//
// A graph of 32 launches, by tokens; one token is the kernel that decoders have.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/decoder/matrix_gpu.hpp"
#include "kernels/decoder/product_chain_gpu.hpp"
#include "kernels/decoder/wide_chain_gpu.hpp"
#include "kernels/matmul/weight_only_variant.hpp"

using namespace inferometer;
using namespace inferometer::decoder;

namespace {

constexpr ChainShape kShape{4096, 4096, 14336, 6144};
constexpr std::int64_t kLayers = 32;
constexpr std::int64_t kOwnLayers = 4;  // of weights
constexpr int kRuns = 9;

struct PlainMemory final : Allocator {
  std::shared_ptr<void> allocate(std::size_t bytes, std::string_view) override {
    void* memory = nullptr;
    INFEROMETER_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return {memory, &cudaFree};
  }
};

std::shared_ptr<void> normal(std::int64_t elements, double deviation, std::uint64_t seed, Stream stream,
                             Allocator& memory) {
  auto values = memory.allocate(static_cast<std::size_t>(elements) * 2, "lab");
  launch_fill_normal(Dtype::f16, values.get(), elements, stream_key(3, seed), normal_scale(deviation), 0, stream);
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  std::string reason;
  const auto device = make_gpu_device(0, reason);
  if (device == nullptr || argc != 2) {
    std::printf("chain_lab WEIGHT_BITS, with a GPU: %s\n", reason.c_str());
    return 2;
  }
  const std::int64_t bits = std::atoi(argv[1]);
  const Stream stream = device->launch().stream;
  PlainMemory memory;
  std::vector<std::shared_ptr<void>> weights;
  double bytes = 0;  // of a layer
  for (std::int64_t layer = 0; layer < kOwnLayers; ++layer)
    for (int p = 0; p < kChainProducts; ++p) {
      const std::int64_t rows = chain_rows(kShape, static_cast<ChainProduct>(p));
      const std::int64_t k = chain_k(kShape, static_cast<ChainProduct>(p));
      auto dense = normal(rows * k, 0.3 / 64, static_cast<std::uint64_t>(weights.size()), stream, memory);
      if (bits != 16) dense = quantize_matrix(dense.get(), rows, k, bits, stream, memory);
      const Matrix matrix{.n = rows, .k = k, .bits = bits, .weights = dense};
      if (layer == 0) bytes += static_cast<double>(matrix.bytes());
      weights.push_back(dense);
    }
  const auto gain = normal(kShape.hidden, 1, 77, stream, memory);
  const auto attention = normal(64 * kShape.attention, 1, 78, stream, memory);
  const auto qkv = normal(64 * kShape.qkv_rows, 1, 79, stream, memory);
  const auto h = memory.allocate(64 * static_cast<std::size_t>(kShape.hidden) * 4, "lab");
  const auto inverse = memory.allocate(64 * 4, "lab");
  std::printf("W%s: floor of 32 layers %.0f us at 4.65 TB/s\n", argv[1], bytes * kLayers / 4.65e6);
  ProductChain chain(kShape, bits, kLayers, 1e-5F, stream, memory);
  WideChain wide(kShape, bits, kLayers, 1e-5F, stream, memory);
  for (const std::int64_t tokens : {1, 8, 16, 32, 64}) {
    {
      const auto launch = [&](Stream on) {
        for (std::int64_t layer = 0; layer < kLayers; ++layer) {
          ChainLayer of_layer{};
          for (int p = 0; p < kChainProducts; ++p) {
            const auto& matrix = weights[static_cast<std::size_t>(layer % kOwnLayers * kChainProducts + p)];
            of_layer.weights[p] = bits == 16 ? matrix.get() : packed_weights(matrix).data();
          }
          of_layer.mlp_gain = of_layer.next_gain = static_cast<const __half*>(gain.get());
          const ChainVectors vectors{.attention = static_cast<const __half*>(attention.get()),
                                     .h = static_cast<float*>(h.get()),
                                     .inverse = static_cast<float*>(inverse.get()),
                                     .qkv = static_cast<__half*>(qkv.get())};
          if (tokens == 1) {
            chain.run(layer, of_layer, vectors, on);
          } else {
            wide.run(layer, of_layer, vectors, tokens, on);
          }
        }
      };
      const std::vector<float> ones(64, 1);
      launch_fill_normal(Dtype::f32, h.get(), 64 * kShape.hidden, stream_key(5, 5), normal_scale(1), 0, stream);
      INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
      INFEROMETER_CUDA_CHECK(cudaMemcpy(inverse.get(), ones.data(), ones.size() * 4, cudaMemcpyHostToDevice));
      launch(stream);  // loads the kernel
      cudaGraph_t graph = nullptr;
      cudaGraphExec_t executable = nullptr;
      INFEROMETER_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      launch(stream);
      INFEROMETER_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
      INFEROMETER_CUDA_CHECK(cudaGraphInstantiate(&executable, graph, 0));
      std::array<cudaEvent_t, 2> events{};
      for (cudaEvent_t& event : events) INFEROMETER_CUDA_CHECK(cudaEventCreate(&event));
      std::vector<float> us;
      for (int i = 0; i < kRuns; ++i) {
        INFEROMETER_CUDA_CHECK(cudaEventRecord(events[0], stream));
        for (int again = 0; again < 4; ++again) INFEROMETER_CUDA_CHECK(cudaGraphLaunch(executable, stream));
        INFEROMETER_CUDA_CHECK(cudaEventRecord(events[1], stream));
        INFEROMETER_CUDA_CHECK(cudaEventSynchronize(events[1]));
        float ms = 0;
        INFEROMETER_CUDA_CHECK(cudaEventElapsedTime(&ms, events[0], events[1]));
        us.push_back(ms * 1e3F / 4);
      }
      std::sort(us.begin(), us.end());
      std::printf("W%s %2ld tokens: %8.1f us (%.1f to %.1f)\n", argv[1], tokens, us[kRuns / 2], us.front(), us.back());
      std::fflush(stdout);
      INFEROMETER_CUDA_CHECK(cudaGraphExecDestroy(executable));
      INFEROMETER_CUDA_CHECK(cudaGraphDestroy(graph));
    }
  }
  return 0;
}
