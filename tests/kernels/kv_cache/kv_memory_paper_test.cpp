// What the PagedAttention paper reports of memory, found again: figure 2's shares and the choice of a block size; and
// that a long trace takes no more memory than a short one.
#include <malloc.h>

#include <algorithm>
#include <string>

#include "kernels/kv_cache/kv_memory_paged.hpp"
#include "reference/kv_memory/simulation.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::run_policy;
using test::share_of_pool;
using test::share_under_load;

namespace {

// Passes everything on, and looks at the heap now and then.
class Watched : public PagedPlacement {
 public:
  using PagedPlacement::PagedPlacement;

  std::optional<KvRoom> admit(const KvRequest& request, std::int64_t tokens, bool alone) override {
    if (request.id % 64 == 0) most_bytes = std::max(most_bytes, mallinfo2().uordblks);
    return PagedPlacement::admit(request, tokens, alone);
  }
  std::size_t most_bytes = 0;  // on the heap
};

}  // namespace

TEST_CASE("kv_memory: shares of the pool under load are those of the PagedAttention paper's figure 2",
          "[kv_memory][paper]") {
  const auto run = [](const char* policy, const char* contiguous) {
    return run_policy(policy, {{"requests", std::int64_t{2000}}, {"contiguous", std::string(contiguous)}});
  };
  // The paper's tokens over the pool: 20.4, 26.8, 38.2 and 96.3 %, with buddies for its contiguous baselines. Lengths
  // here have the means of its trace alone, so a few points are between them.
  const KvLedger maximum = run("cpu.reserve_max", "buddy");
  CHECK(share_under_load(maximum) == Approx(0.204).margin(0.02));
  CHECK(share_of_pool(maximum, KvCount::external) == Approx(0.0885).margin(0.002));  // 1,392 of 15,728 slots
  CHECK(share_under_load(run("cpu.reserve_pow2", "buddy")) == Approx(0.268).margin(0.04));
  CHECK(share_under_load(run("cpu.reserve_oracle", "buddy")) == Approx(0.382).margin(0.04));
  CHECK(share_under_load(run("cpu.paged", "buddy")) > 0.96);
  CHECK(share_under_load(run("cpu.paged", "buddy")) < 0.985);  // the last block of 32 requests, half empty: 1.6 %
  // First fit wastes less: what is left is what they reserve, and holes.
  CHECK(share_under_load(run("cpu.reserve_max", "first_fit")) == share_under_load(maximum));
  CHECK(share_under_load(run("cpu.reserve_pow2", "first_fit")) == Approx(0.38).margin(0.03));
  CHECK(share_under_load(run("cpu.reserve_oracle", "first_fit")) == Approx(0.50).margin(0.03));
}

TEST_CASE("kv_memory: blocks of 8 are the largest within 1 % of the best share of the pool", "[kv_memory][paper]") {
  double best = 0;
  std::int64_t knee = 0;
  double allocated_before = 2;
  for (std::int64_t block_size = 1; block_size <= 256; block_size *= 2) {
    CAPTURE(block_size);
    const KvLedger ledger = run_policy("cpu.paged", {{"requests", std::int64_t{2000}}, {"block_size", block_size}});
    const double share = share_under_load(ledger);
    best = std::max(best, share);
    if (share >= 0.99 * best) knee = block_size;
    // What the last block wastes grows with it.
    const std::int64_t allocated = ledger[KvCount::token] + ledger[KvCount::reserved] + ledger[KvCount::internal];
    const double of_allocated = static_cast<double>(ledger[KvCount::token]) / static_cast<double>(allocated);
    CHECK(of_allocated < allocated_before);
    allocated_before = of_allocated;
  }
  CHECK(knee == 8);
}

TEST_CASE("kv_memory: memory does not grow with the trace", "[kv_memory][streaming]") {
  const auto peak_of = [](std::int64_t requests) {
    KvMemoryProblem problem = test::parse_problem({{"requests", requests}});
    Watched policy(problem, false);
    const KvLedger ledger = Simulation(problem, policy).run();
    CHECK(ledger[KvCount::requests] == requests);
    return policy.most_bytes;
  };
  const std::size_t few = peak_of(2'000);
  const std::size_t many = peak_of(60'000);
  // 58,000 requests would take 4.6 MB; what grows is the longest queue of running and preempted ones seen so far.
  CHECK(many < few + 200'000);
}
