// The pool under a scheduler that takes a running sequence's blocks when none are left, and computes it again later.
#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <utility>

#include "tests/kernels/kv_cache/pool_support.hpp"
#include "tests/kernels/kv_cache/simulated_cache.hpp"

using namespace inferometer;
using namespace inferometer::test;

namespace {

struct Request {
  SequenceId id = 0;
  Tokens prompt;
  std::int64_t max_new = 0;
};

struct Outcome {
  Tokens outputs;
  int last_step = 0;  // counted from 1
  int preemptions = 0;
  std::int64_t recomputed_tokens = 0;
};

// First come, first served; when the pool is full, the latest arrival that runs is preempted, its tokens kept and its
// cache computed again from the start. Each step every running sequence computes what it has not, and outputs a token.
class Scheduler {
 public:
  Scheduler(const BlockPoolConfig& config, const std::vector<Request>& requests) : pool_(config), cache_(pool_) {
    for (const Request& request : requests) waiting_.push_back({.request = request, .tokens = request.prompt});
  }

  std::map<SequenceId, Outcome> run() {
    for (int step = 1; !waiting_.empty() || !running_.empty(); ++step) {
      REQUIRE(step < 1000);
      for (std::size_t i = 0; i < running_.size(); ++i)  // oldest first; may end the youngest
        make_room(running_[i]);
      if (!preempted_) admit();
      preempted_ = false;
      compute(step);
      require_sound(pool_);
    }
    return outcomes_;
  }

 private:
  struct Sequence {
    Request request;
    Tokens tokens;              // the prompt and all outputs
    std::int64_t computed = 0;  // in the cache
    std::int64_t lost = 0;      // were in the cache when it was preempted
  };

  static std::span<const TokenId> next_tokens(const Sequence& s) { return tail(s.tokens, s.computed); }

  void make_room(Sequence& s) {
    const std::int64_t wanted = std::ssize(next_tokens(s));
    while (pool_.blocks_to_append(s.request.id, wanted) > pool_.available_blocks()) {
      const bool itself = &running_.back() == &s;
      preempt();
      if (itself) return;
    }
    pool_.append(s.request.id, next_tokens(s));
  }

  // The victim has not been appended to in this step: all it has is computed.
  void preempt() {
    Sequence& victim = running_.back();
    pool_.free(victim.request.id);
    ++outcomes_[victim.request.id].preemptions;
    victim.lost = std::exchange(victim.computed, 0);
    waiting_.push_front(std::move(victim));
    running_.pop_back();
    preempted_ = true;
  }

  void admit() {
    while (!waiting_.empty()) {
      Sequence& s = waiting_.front();
      const std::int64_t outputs = std::ssize(s.tokens) - std::ssize(s.request.prompt);
      const std::int64_t reused = pool_.submit(s.request.id, s.tokens, s.request.max_new - outputs);
      s.computed = reused;
      if (pool_.blocks_to_append(s.request.id, std::ssize(next_tokens(s))) > pool_.available_blocks()) {
        pool_.free(s.request.id);
        return;
      }
      pool_.append(s.request.id, next_tokens(s));
      outcomes_[s.request.id].recomputed_tokens += std::max<std::int64_t>(0, s.lost - reused);
      running_.push_back(std::move(s));
      waiting_.pop_front();
    }
  }

  void compute(int step) {
    for (auto s = running_.begin(); s != running_.end();) {
      const auto table = pool_.table(s->request.id);
      cache_.compute(table, s->tokens, static_cast<std::size_t>(s->computed));
      REQUIRE(cache_.holds(table, s->tokens));
      s->computed = std::ssize(s->tokens);
      // What a model that reads the whole cache would say next.
      const std::uint64_t seen = cache_.slot(table, s->tokens.size() - 1);
      Outcome& outcome = outcomes_[s->request.id];
      outcome.outputs.push_back(static_cast<TokenId>(seen >> 48));
      s->tokens.push_back(outcome.outputs.back());
      if (std::ssize(outcome.outputs) < s->request.max_new) {
        ++s;
        continue;
      }
      outcome.last_step = step;
      pool_.free(s->request.id);
      s = running_.erase(s);
    }
  }

  BlockPool pool_;
  SimulatedCache cache_;
  std::deque<Sequence> waiting_;
  std::deque<Sequence> running_;  // by arrival
  std::map<SequenceId, Outcome> outcomes_;
  bool preempted_ = false;
};

std::map<SequenceId, Outcome> run(std::int32_t num_blocks, bool prefix_reuse, const std::vector<Request>& requests) {
  return Scheduler({.num_blocks = num_blocks, .block_size = 4, .prefix_reuse = prefix_reuse}, requests).run();
}

}  // namespace

TEST_CASE("block pool: a preempted sequence is computed again and says the same", "[kv_cache][block_pool]") {
  const std::vector<Request> requests{{.id = 1, .prompt = consecutive(0, 12), .max_new = 8},
                                      {.id = 2, .prompt = consecutive(50, 12), .max_new = 8}};
  const auto roomy = run(20, false, requests);
  for (const auto& [id, outcome] : roomy) {
    CHECK(outcome.last_step == 8);
    CHECK(outcome.preemptions == 0);
  }

  SECTION("from its first token on") {
    const auto tight = run(8, false, requests);
    CHECK(tight.at(1).last_step == 8);
    CHECK(tight.at(1).preemptions == 0);
    CHECK(tight.at(2).last_step == 11);
    CHECK(tight.at(2).preemptions == 1);
    CHECK(tight.at(2).recomputed_tokens == 16);
    for (const SequenceId id : {1, 2}) CHECK(tight.at(id).outputs == roomy.at(id).outputs);
  }
  SECTION("or, with prefix reuse, from what is still cached") {
    const auto tight = run(8, true, requests);
    CHECK(tight.at(2).last_step == 11);
    CHECK(tight.at(2).preemptions == 1);
    CHECK(tight.at(2).recomputed_tokens == 4);  // sequence 1 took one of its four blocks, the last
    for (const SequenceId id : {1, 2}) CHECK(tight.at(id).outputs == roomy.at(id).outputs);
  }
}

TEST_CASE("block pool: many sequences that preempt each other say the same as without", "[kv_cache][block_pool]") {
  constexpr std::uint64_t kSeed = 3;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  std::vector<Request> requests;
  for (SequenceId id = 0; id < 40; ++id)
    requests.push_back({.id = id,
                        .prompt = consecutive(static_cast<TokenId>(random() % 3), 1 + static_cast<int>(random() % 20)),
                        .max_new = 1 + static_cast<std::int64_t>(random() % 20)});
  const auto roomy = run(1000, false, requests);
  for (const bool prefix_reuse : {false, true}) {
    const auto tight = run(20, prefix_reuse, requests);
    int preemptions = 0;
    for (const auto& [id, outcome] : tight) {
      CAPTURE(id, prefix_reuse);
      CHECK(outcome.outputs == roomy.at(id).outputs);
      preemptions += outcome.preemptions;
    }
    CHECK(preemptions > 5);
  }
}
