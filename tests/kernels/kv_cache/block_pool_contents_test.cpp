// A long random run of a pool with prefix reuse beside the contents of its blocks: whatever is shared, copied, evicted
// and found again, every sequence reads its own tokens.
#include <map>
#include <random>

#include "tests/kernels/kv_cache/pool_support.hpp"
#include "tests/kernels/kv_cache/simulated_cache.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

std::uint64_t two_bits(std::uint64_t prefix, std::span<const TokenId> tokens) {
  return hash_block_tokens(prefix, tokens) & 3;
}
std::uint64_t always_collides(std::uint64_t, std::span<const TokenId>) { return 42; }

// Random steps of a scheduler that keeps to the pool's contract: see block_pool.hpp.
class RandomScheduler {
 public:
  RandomScheduler(const BlockPoolConfig& config, std::uint64_t seed) : pool(config), cache_(pool), random_(seed) {}

  void step() {
    for (std::int64_t i = below(6); i > 0; --i) change();
    cache_.make_copies(pool.pending_copies(), random_);
    pool.copies_made();
    for (auto& [id, s] : live_) {
      cache_.compute(pool.table(id), s.tokens, static_cast<std::size_t>(s.computed));
      s.computed = std::ssize(s.tokens);
    }
    pool.step_done();
    REQUIRE(
        std::ranges::all_of(live_, [&](const auto& l) { return cache_.holds(pool.table(l.first), l.second.tokens); }));
    require_sound(pool);
  }

  void end_all() {
    while (!live_.empty()) end(live_.begin());
  }

  BlockPool pool;

 private:
  struct Sequence {
    Tokens prompt;
    Tokens tokens;              // stored, computed or not
    std::int64_t computed = 0;  // of them
  };
  using Live = std::map<SequenceId, Sequence>;

  static bool is_computed(const Sequence& s) { return s.computed == std::ssize(s.tokens); }

  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }
  // Of few symbols, so that prompts agree often and part anywhere.
  Tokens random_tokens(std::int64_t count) {
    Tokens tokens(static_cast<std::size_t>(count));
    for (TokenId& token : tokens) token = below(8) == 0 ? 1 : 0;
    return tokens;
  }

  void change() {
    const std::int64_t choice = below(12);
    const bool crowded = live_.size() >= 8;
    if (live_.empty() || (choice < 2 && !crowded)) return submit();
    const auto chosen = std::next(live_.begin(), below(std::ssize(live_)));
    if (choice < 4 && !crowded) return fork(chosen);
    if (choice < 6) return end(chosen);
    append(chosen);
  }

  void submit() {
    const SequenceId id = next_id_++;
    Sequence s{.prompt = random_tokens(1 + below(30)), .tokens = {}};
    const std::int64_t reused = pool.submit(id, s.prompt, 1 + below(20));
    REQUIRE(reused < std::ssize(s.prompt));
    s.tokens.assign(s.prompt.begin(), s.prompt.begin() + reused);
    REQUIRE(cache_.holds(pool.table(id), s.tokens));  // now, not only after this step
    s.computed = reused;
    live_.emplace(id, std::move(s));
  }

  // The rest of its prompt, in chunks, or a few new tokens; a second time in a step it is refused.
  void append(Live::iterator chosen) {
    auto& [id, s] = *chosen;
    if (!is_computed(s)) {
      if (pool.length(id) < pool.capacity(id))
        REQUIRE(fault_of([&] { pool.append(chosen->first); }) == BlockPoolFault::uncomputed);
      return;
    }
    const std::int64_t missing = std::ssize(s.prompt) - std::ssize(s.tokens);
    Tokens next;
    if (missing > 0) {
      const auto begin = s.prompt.begin() + std::ssize(s.tokens);
      next.assign(begin, begin + 1 + below(missing));
    } else {
      next = random_tokens(std::min(1 + below(5), pool.capacity(id) - pool.length(id)));
    }
    try {
      pool.append(id, next);
      s.tokens.insert(s.tokens.end(), next.begin(), next.end());
    } catch (const BlockPoolError& error) {
      REQUIRE(error.fault() == BlockPoolFault::full);
    }
  }

  void fork(Live::iterator chosen) {
    const SequenceId id = next_id_++;
    if (!is_computed(chosen->second)) {
      REQUIRE(fault_of([&] { pool.fork(chosen->first, id); }) == BlockPoolFault::uncomputed);
      return;
    }
    pool.fork(chosen->first, id);
    live_.emplace(id, chosen->second);
  }

  void end(Live::iterator chosen) {
    const auto& [id, s] = *chosen;
    if (is_computed(s) && below(4) > 0)
      pool.free(id);
    else
      pool.abort(id);
    live_.erase(chosen);
  }

  SimulatedCache cache_;
  Live live_;
  SequenceId next_id_ = 0;
  std::mt19937_64 random_;
};

}  // namespace

TEST_CASE("block pool: whatever is shared, copied and reused, every sequence reads its own tokens",
          "[kv_cache][block_pool]") {
  constexpr std::uint64_t kSeed = 11;
  struct Row {
    const char* name;
    BlockHash hash;
  };
  for (const Row row :
       {Row{"64 bits", &hash_block_tokens}, {"2 bits", &two_bits}, {"every hash equal", &always_collides}}) {
    CAPTURE(kSeed, row.name);
    RandomScheduler scheduler(
        {.num_blocks = 40, .block_size = 4, .prefix_reuse = true, .block_hash = row.hash, .explicit_steps = true},
        kSeed);
    for (int step = 0; step < 30'000; ++step) {
      CAPTURE(step);
      scheduler.step();
    }
    const BlockPoolUsage usage = scheduler.pool.usage();
    CHECK(usage.reused_tokens > 10'000);  // so that the test is about them
    CHECK(usage.copied_blocks > 1'000);
    CHECK(usage.evicted_blocks > 1'000);
    scheduler.end_all();
    require_sound(scheduler.pool);
    CHECK(scheduler.pool.available_blocks() == 40);
  }
}
