// A million requests through each policy of kv_memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "harness/operator/registry.hpp"
#include "reference/kv_memory/problem.hpp"

namespace {

using namespace inferometer;

void simulate_requests(benchmark::State& state, const Variant& variant, const std::string& trace) {
  const std::int64_t requests = state.range(0);
  const std::shared_ptr<const void> problem =
      find_operator("kv_memory")->parse({{"trace", trace}, {"requests", requests}});
  std::vector<std::int32_t> limbs(kKvCounts * kKvLimbs);
  const KvMemoryTensors tensors{.ledger = limbs.data()};
  for (auto _ : state) variant.run(problem.get(), &tensors, {});
  const KvLedger ledger = KvLedger::read(limbs);
  if (ledger[KvCount::requests] != requests) state.SkipWithError("wrong number of requests");
  state.counters["steps"] = static_cast<double>(ledger[KvCount::steps]);
  state.counters["preemptions"] = static_cast<double>(ledger[KvCount::preemptions]);
  state.SetItemsProcessed(state.iterations() * requests);
}

}  // namespace

int main(int argc, char** argv) {
  for (const Variant* variant : variants_of("kv_memory"))
    for (const char* trace : {"synthetic_sharegpt", "synthetic_alpaca"})
      benchmark::RegisterBenchmark(
          (variant->name + "/" + trace).c_str(),
          [variant, trace](benchmark::State& state) { simulate_requests(state, *variant, trace); })
          ->Arg(1'000'000)
          ->Iterations(1)
          ->Unit(benchmark::kSecond);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
