// Decode steps of Llama-3-8B by each way of launching, in turns: decode_lab WEIGHT_BITS.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/operator_launch.hpp"
#include "reference/decoder/seeded_weights.hpp"

using namespace inferometer;

namespace {

constexpr int kSteps = 24;
constexpr int kRounds = 3;
constexpr std::int64_t kBlocks = 144;  // of a sequence

struct PlainMemory final : Allocator {
  std::shared_ptr<void> allocate(std::size_t bytes, std::string_view) override {
    void* memory = nullptr;
    INFEROMETER_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return {memory, &cudaFree};
  }
};

// us a step, of kSteps behind two others.
double run(CudaDecoder& decoder, std::size_t rows, std::int64_t context, Stream stream) {
  std::vector<std::int32_t> tables(rows * kBlocks);
  std::iota(tables.begin(), tables.end(), 0);
  std::vector<TokenId> ids(rows);
  std::iota(ids.begin(), ids.end(), 1000);
  StepBatch batch;
  for (std::size_t r = 0; r < rows; ++r)
    batch.rows.push_back({static_cast<SequenceId>(r), std::span(ids).subspan(r, 1), context,
                          std::span(tables).subspan(r * kBlocks, kBlocks), true});
  batch.tokens = static_cast<std::int64_t>(rows);
  decoder.queue_batch(batch);
  cudaEvent_t events[2] = {};
  for (cudaEvent_t& event : events) INFEROMETER_CUDA_CHECK(cudaEventCreate(&event));
  for (int i = 0; i < 2 + kSteps; ++i) {
    if (i > 0) decoder.queue_advance();
    if (i == 2) INFEROMETER_CUDA_CHECK(cudaEventRecord(events[0], stream));
    decoder.queue_step();
  }
  INFEROMETER_CUDA_CHECK(cudaEventRecord(events[1], stream));
  INFEROMETER_CUDA_CHECK(cudaEventSynchronize(events[1]));
  float ms = 0;
  INFEROMETER_CUDA_CHECK(cudaEventElapsedTime(&ms, events[0], events[1]));
  return ms * 1e3 / kSteps;
}

}  // namespace

int main(int, char** argv) {
  std::string reason;
  const auto device = make_gpu_device(0, reason);
  const Stream stream = device->launch().stream;
  PlainMemory memory;
  DecoderConfig config{.weight_bits = std::atoi(argv[1]), .num_blocks = 128 * kBlocks, .max_rows = 128};
  config.max_tokens = 128;
  config.max_length = 16 * kBlocks;
  CudaDecoder model(SeededWeights(decoder_shape("llama3_8b"), 1), config, stream, memory);
  const auto pool = model.device_pool();
  launch_fill_normal(Dtype::f16, pool.data(), static_cast<std::int64_t>(pool.size() / 2), 7, 1, 0, stream);
  bool equal = true;
  for (const auto& [rows, context] : {std::pair(1, 128), {1, 2048}, {32, 2048}, {128, 2048}}) {
    constexpr int kWays = 6;  // as before; early; 8, 16, 32 MB ahead; early with DecoderConfig::prefetch
    std::vector<double> us[kWays];
    std::vector<float> expected;
    for (int i = 0; i < kRounds * kWays; ++i) {
      const int way = i % kWays;
      decoder::begin_early = way > 0;
      decoder::bytes_ahead = way > 1 && way < 5 ? 2U << (20 + way) : 0;
      decoder::prefetches = way == 5;
      us[way].push_back(run(model, static_cast<std::size_t>(rows), context, stream));
      const std::vector<float> logits = model.logits();  // follow from all tokens and keys of the run
      if (i == 0) expected = logits;
      if (logits != expected) std::printf("DIFFERENT LOGITS: way %d\n", way);
      equal = equal && logits == expected;
    }
    for (int way = 0; way < kWays; ++way) {
      std::sort(us[way].begin(), us[way].end());
      const double median = us[way][kRounds / 2];
      std::printf("W%s %3d x %4d way %d: %8.1f us (%.1f to %.1f) %8.1f tokens/s\n", argv[1], rows, context, way, median,
                  us[way].front(), us[way].back(), rows * 1e6 / median);
    }
    std::fflush(stdout);
  }
  return equal ? 0 : 1;
}
