// From the text of a config to validated rows with their ids.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>

#include "harness/sweep/sweep.hpp"

namespace {

// `rows` rows of one variant: three axes, a condition that holds everywhere.
std::string config_of(std::int64_t rows) {
  std::string lengths;
  for (std::int64_t i = 0; i < rows / 20; ++i) lengths += (i == 0 ? "" : ", ") + std::to_string(64 + i);
  return R"({"schema": "inferometer.sweep/1", "name": "expansion", "operator": "attention_prefill",
             "variants": ["cpu.naive"], "baseline": "cpu.naive", "fixed": {"head_dim": 64, "dtype": "f16"},
             "axes": {"batch": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], "causal": [false, true], "seq_len": [)" +
         lengths + R"(]}, "where": ["q_len >= 64 and variant != 'cpu.flash'"]})";
}

void expand_sweep(benchmark::State& state) {
  const std::string config = config_of(state.range(0));
  for (auto _ : state) {
    const inferometer::Sweep sweep = inferometer::parse_sweep(config, "expansion.json", {});
    if (static_cast<std::int64_t>(sweep.rows.size()) != state.range(0)) state.SkipWithError("wrong number of rows");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(expand_sweep)->Arg(100)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
