// Decode steps of Llama-3-8B of several rows, in turns: decode_lab WEIGHT_BITS.
//
// Ways: 0 a kernel a product, 1 the chain of products for several rows.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "harness/measure/device.hpp"
#include "harness/measure/gpu_kernels.hpp"
#include "harness/operator/cuda_check.cuh"
#include "harness/operator/generate.hpp"
#include "kernels/decoder/decoder.hpp"
#include "kernels/decoder/forward_gpu.hpp"
#include "reference/decoder/seeded_weights.hpp"

using namespace inferometer;

namespace {

constexpr int kSteps = 24;
constexpr int kRounds = 5;
constexpr std::int64_t kBlocks = 144;  // of a sequence
constexpr std::array<std::int64_t, 2> kWays = {1, decoder::kMostWideTokens};

struct PlainMemory final : Allocator {
  std::shared_ptr<void> allocate(std::size_t bytes, std::string_view) override {
    void* memory = nullptr;
    INFEROMETER_CUDA_CHECK(cudaMalloc(&memory, bytes));
    return {memory, &cudaFree};
  }
};

struct Batch {
  std::vector<std::int32_t> tables;
  std::vector<TokenId> ids;
  StepBatch batch;

  Batch(std::size_t rows, std::int64_t context) : tables(rows * kBlocks), ids(rows) {
    std::iota(tables.begin(), tables.end(), 0);
    std::iota(ids.begin(), ids.end(), 1000);
    for (std::size_t r = 0; r < rows; ++r)
      batch.rows.push_back({static_cast<SequenceId>(r), std::span(ids).subspan(r, 1), context,
                            std::span(tables).subspan(r * kBlocks, kBlocks), true});
    batch.tokens = static_cast<std::int64_t>(rows);
  }
};

// us a step, of kSteps behind two others.
double run(CudaDecoder& decoder, const Batch& batch, Stream stream) {
  decoder.queue_batch(batch.batch);
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

// us of a step that the host waits for, from its inputs to its tokens.
double run_waited(CudaDecoder& decoder, const Batch& batch) {
  std::vector<TokenId> next(batch.ids.size());
  std::vector<double> us;
  for (int i = 0; i < 9; ++i) {
    const auto begun = std::chrono::steady_clock::now();
    decoder.step(batch.batch, next);
    us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
  }
  std::sort(us.begin(), us.end());
  return us[us.size() / 2];
}

double rel_l2(const std::vector<float>& got, const std::vector<float>& expected) {
  double error = 0;
  double norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error += std::pow(double{got[i]} - expected[i], 2);
    norm += std::pow(double{expected[i]}, 2);
  }
  return std::sqrt(error / norm);
}

}  // namespace

int main(int argc, char** argv) {
  const auto begun = std::chrono::steady_clock::now();
  std::string reason;
  const auto device = make_gpu_device(0, reason);
  if (device == nullptr || argc != 2) {
    std::printf("decode_lab WEIGHT_BITS, with a GPU: %s\n", reason.c_str());
    return 2;
  }
  const Stream stream = device->launch().stream;
  PlainMemory memory;
  DecoderConfig config{.weight_bits = std::atoi(argv[1]), .num_blocks = 64 * kBlocks, .max_rows = 64};
  config.max_tokens = 64;
  config.max_length = 16 * kBlocks;
  CudaDecoder model(SeededWeights(decoder_shape("llama3_8b"), 1), config, stream, memory);
  const auto pool = model.device_pool();
  launch_fill_normal(Dtype::f16, pool.data(), static_cast<std::int64_t>(pool.size() / 2), 7, normal_scale(1), 0,
                     stream);
  INFEROMETER_CUDA_CHECK(cudaStreamSynchronize(stream));
  const std::chrono::duration<double> loading = std::chrono::steady_clock::now() - begun;
  std::printf("W%s loaded in %.1f s\n", argv[1], loading.count());
  std::fflush(stdout);
  bool right = true;
  for (const auto& [rows, context] : {std::pair(32, 1024), {16, 1024}, {8, 1024}, {4, 1024}, {48, 1024}, {64, 1024}}) {
    const Batch batch(static_cast<std::size_t>(rows), context);
    // One step of the same tokens by each way: how far logits are apart.
    std::vector<float> expected;
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      decoder::lab_wide_tokens = kWays[way];
      model.queue_batch(batch.batch);
      model.queue_step();
      const std::vector<float> logits = model.logits();
      if (way == 0) expected = logits;
      const double apart = rel_l2(logits, expected);
      const bool is_near = apart < 2e-2;  // false for NaN
      std::printf("W%s %3d x %4d way %zu: logits %.1e apart, %s\n", argv[1], rows, context, way, apart,
                  is_near ? "right" : "WRONG");
      std::fflush(stdout);
      right = right && is_near;
    }
    std::array<std::vector<double>, kWays.size()> us;
    std::array<std::vector<double>, kWays.size()> waited;
    for (int round = 0; round < kRounds; ++round)
      for (std::size_t way = 0; way < kWays.size(); ++way) {
        decoder::lab_wide_tokens = kWays[way];
        us[way].push_back(run(model, batch, stream));
        waited[way].push_back(run_waited(model, batch));
      }
    for (std::size_t way = 0; way < kWays.size(); ++way) {
      std::sort(us[way].begin(), us[way].end());
      std::sort(waited[way].begin(), waited[way].end());
      const double median = us[way][kRounds / 2];
      std::printf("W%s %3d x %4d way %zu: %8.1f us (%.1f to %.1f) %8.1f tokens/s, waited for %8.1f us\n", argv[1], rows,
                  context, way, median, us[way].front(), us[way].back(), rows * 1e6 / median, waited[way][kRounds / 2]);
    }
    std::fflush(stdout);
  }
  return right ? 0 : 1;
}
