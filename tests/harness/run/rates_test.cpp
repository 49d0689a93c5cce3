#include "harness/run/rates.hpp"

#include "tests/support/catch.hpp"

using namespace inferometer;

namespace {

Ceilings gpu_ceilings() {
  Ceilings ceilings;
  ceilings.read_bytes_per_s = 4e12;
  ceilings.f16_flops_per_s = 8e14;
  ceilings.f32_flops_per_s = 5e13;
  return ceilings;
}

}  // namespace

TEST_CASE("rates: the ceiling met first is the limit", "[run][rates]") {
  // 8e8 flops need 1000 ns at 8e14/s; 4e6 bytes need 1000 ns at 4e12/s.
  const Rates compute = rates_of({.flops = 8e8, .bytes = 2e6}, 2000, gpu_ceilings(), true, CacheMode::cold);
  CHECK(compute.limit == "compute");
  CHECK(*compute.fraction_of_ceiling == Approx(0.5));
  CHECK(*compute.flops_per_s == Approx(4e14));
  CHECK(*compute.bytes_per_s == Approx(1e12));
  const Rates memory = rates_of({.flops = 4e8, .bytes = 4e6}, 2000, gpu_ceilings(), true, CacheMode::cold);
  CHECK(memory.limit == "memory");
  CHECK(*memory.fraction_of_ceiling == Approx(0.5));
}

TEST_CASE("rates: a warm cache is not bound by the memory's rate", "[run][rates]") {
  const Work work{.flops = 0, .bytes = 4e6, .arithmetic = Arithmetic::f32};
  const Rates cold = rates_of(work, 500, gpu_ceilings(), true, CacheMode::cold);
  CHECK(faster_than_possible(cold) == "2 times as fast as the memory ceiling allows");
  const Rates warm = rates_of(work, 500, gpu_ceilings(), true, CacheMode::warm);
  CHECK(warm.limit.empty());
  CHECK_FALSE(warm.fraction_of_ceiling);
  CHECK(*warm.bytes_per_s == Approx(8e12));
  CHECK(faster_than_possible(warm) == "");
}

TEST_CASE("rates: a ceiling's own error is 5 % for memory and 10 % for arithmetic", "[run][rates]") {
  const auto verdict = [](const Work& work, double ns) {
    return faster_than_possible(rates_of(work, ns, gpu_ceilings(), true, CacheMode::cold));
  };
  const Work memory{.flops = 0, .bytes = 4e6};  // 1000 ns
  CHECK(verdict(memory, 1000 / 1.04) == "");
  CHECK(verdict(memory, 1000 / 1.06) == "1.06 times as fast as the memory ceiling allows");
  const Work arithmetic{.flops = 8e8, .bytes = 0};  // 1000 ns
  CHECK(verdict(arithmetic, 1000 / 1.09) == "");
  CHECK(verdict(arithmetic, 1000 / 1.11) == "1.11 times as fast as the compute ceiling allows");
}

TEST_CASE("rates: each arithmetic has its ceiling, and a processor its f32 rate", "[run][rates]") {
  const Work f32{.flops = 5e7, .bytes = 0, .arithmetic = Arithmetic::f32};
  CHECK(*rates_of(f32, 1000, gpu_ceilings(), true, CacheMode::cold).fraction_of_ceiling == Approx(1));
  const Work int8{.flops = 5e7, .bytes = 0, .arithmetic = Arithmetic::int8_matmul};
  CHECK_FALSE(rates_of(int8, 1000, gpu_ceilings(), true, CacheMode::cold).fraction_of_ceiling);  // not measured
  const Work f16{.flops = 5e7, .bytes = 0};
  CHECK(*rates_of(f16, 1000, gpu_ceilings(), false, CacheMode::cold).fraction_of_ceiling == Approx(1));
}

TEST_CASE("rates: no time gives no rates rather than infinite ones", "[run][rates]") {
  const Rates rates = rates_of({.flops = 1, .bytes = 1}, 0, gpu_ceilings(), true, CacheMode::cold);
  CHECK_FALSE(rates.flops_per_s);
  CHECK_FALSE(rates.bytes_per_s);
  CHECK_FALSE(rates.fraction_of_ceiling);
}
