// The quantisers on layers of a model's size, calibration given.
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdint>
#include <vector>

#include "harness/operator/generate.hpp"
#include "reference/weight_quantization/awq.hpp"
#include "reference/weight_quantization/gptq.hpp"
#include "reference/weight_quantization/rounding.hpp"

namespace {

using namespace inferometer;

std::vector<float> random_floats(std::uint64_t stream, std::int64_t count, double stddev) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = normal_at(stream_key(1, stream), i, normal_scale(stddev));
  return values;
}

// Of inputs that all share one factor: H = 1 + a a^T, at once.
Calibration shared_factor(std::int64_t k) {
  const auto size = static_cast<std::size_t>(k);
  const std::vector<float> loads = random_floats(2, k, 0.5);
  Calibration made{.k = k, .tokens = 1};
  made.hessian.resize(size * size);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      made.hessian[i * size + j] = static_cast<double>(loads[i]) * static_cast<double>(loads[j]) + (i == j ? 1 : 0);
  for (std::size_t i = 0; i < size; ++i) made.mean_magnitude.push_back(0.8 * made.hessian[i * size + i]);
  return made;
}

template <class Quantize>
void quantize_layer(benchmark::State& state, const Quantize& quantize) {
  const std::int64_t n = state.range(0);
  const std::int64_t k = state.range(1);
  const std::vector<float> values = random_floats(1, n * k, 0.02);
  const FloatMatrix weights{values.data(), n, k};
  const Calibration calibration = shared_factor(k);
  for (auto _ : state) {
    const QuantizerResult result = quantize(weights, calibration, omp_get_num_procs());
    if (!result.weights.warnings.empty()) state.SkipWithError(result.weights.warnings.front().c_str());
    benchmark::DoNotOptimize(result.weights.codes.data());
  }
  state.SetItemsProcessed(state.iterations() * n * k);
}

void rounding(benchmark::State& state) {
  quantize_layer(state, [](const FloatMatrix& weights, const Calibration&, int threads) {
    return quantize_rounding(weights, {}, threads);
  });
}

void gptq(benchmark::State& state) {
  quantize_layer(state, [](const FloatMatrix& weights, const Calibration& calibration, int threads) {
    return quantize_gptq(weights, calibration, {}, threads);
  });
}

void awq(benchmark::State& state) {
  quantize_layer(state, [](const FloatMatrix& weights, const Calibration& calibration, int threads) {
    return quantize_awq(weights, calibration, {}, threads);
  });
}

// 2048 tokens, as many as one sequence of a usual calibration of 128.
void calibrate_tokens(benchmark::State& state) {
  constexpr std::int64_t kTokens = 2048;
  const std::int64_t k = state.range(0);
  const std::vector<float> values = random_floats(3, kTokens * k, 1.0);
  for (auto _ : state) {
    const Calibration made = calibrate({values.data(), kTokens, k}, omp_get_num_procs());
    benchmark::DoNotOptimize(made.hessian.data());
  }
  state.SetItemsProcessed(state.iterations() * kTokens);
}

// Layers of Llama 3 8B: attention's output, the MLP's gate, and the way back down.
void layers(benchmark::internal::Benchmark* of) {
  of->Args({4096, 4096})
      ->Args({14336, 4096})
      ->Args({4096, 14336})
      ->Iterations(1)
      ->UseRealTime()
      ->Unit(benchmark::kSecond);
}

BENCHMARK(rounding)->Apply(layers);
BENCHMARK(gptq)->Apply(layers);
BENCHMARK(awq)->Args({4096, 4096})->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);
BENCHMARK(calibrate_tokens)->Arg(4096)->Arg(14336)->Iterations(1)->UseRealTime()->Unit(benchmark::kSecond);

}  // namespace

BENCHMARK_MAIN();
