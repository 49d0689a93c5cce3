// cpu.paged_prefix against a plain scheduler over the same kind of pool: one append a token, every admission tried in
// every step, every state counted from the tables.
#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kernels/kv_cache/block_pool.hpp"
#include "kernels/kv_cache/kv_memory_paged.hpp"
#include "tests/reference/kv_memory/kv_memory_runs.hpp"

using namespace inferometer;
using test::TemporaryTrace;

namespace {

struct Job {
  KvRequest request;
  std::int64_t generated = 0;
};

class PlainScheduler {
 public:
  explicit PlainScheduler(const KvMemoryProblem& problem)
      : p_(problem),
        pool_({.num_blocks = static_cast<std::int32_t>(p_.pool_slots() / p_.block_size),
               .block_size = static_cast<std::int32_t>(p_.block_size),
               .prefix_reuse = true}) {
    const auto source = open_requests(p_);
    for (KvRequest request; source->next(request);) requests_.push_back(request);
    ledger_[KvCount::pool_slots] = p_.pool_slots();
  }

  KvLedger run() {
    for (std::int64_t step = 0; next_ < requests_.size() || !waiting_.empty() || !running_.empty(); ++step) {
      bool preempted = false;
      std::erase_if(running_, [&](const Job& job) {
        const bool ended = job.generated == job.request.output;
        if (ended) pool_.free(job.request.id);
        return ended;
      });
      for (std::size_t i = 0; i < running_.size(); ++i) {
        while (i < running_.size() && !append_one(running_[i])) {
          preempted = true;
          preempt_last();
        }
      }
      while (next_ < requests_.size() && requests_[next_].arrival_ms <= static_cast<double>(step) * p_.step_ms)
        arrive(requests_[next_++]);
      while (!preempted && !waiting_.empty() && admit()) {
      }
      for (Job& job : running_) ++job.generated;
      if (running_.empty() && waiting_.empty() && next_ == requests_.size()) break;
      count();
    }
    CHECK(pool_.check_invariants().empty());
    return ledger_;
  }

 private:
  std::vector<TokenId> tokens(const KvRequest& request, std::int64_t begin, std::int64_t end) const {
    std::vector<TokenId> made;
    make_tokens(request, begin, end, made);
    return made;
  }

  void arrive(const KvRequest& request) {
    ++ledger_[KvCount::requests];
    ledger_[KvCount::prompt_tokens] += request.prompt;
    ledger_[KvCount::output_tokens] += request.output;
    const std::int64_t stored = request.prompt + request.output - 1;
    if (stored > p_.max_length || (stored + p_.block_size - 1) / p_.block_size > pool_.num_blocks()) {
      ++ledger_[KvCount::refused];
      ledger_[KvCount::refused_output] += request.output;
    } else {
      waiting_.push_back({.request = request});
    }
  }

  bool append_one(const Job& job) {
    const std::int64_t length = pool_.length(job.request.id);
    if (pool_.blocks_to_append(job.request.id, 1) > pool_.available_blocks()) return false;
    pool_.append(job.request.id, tokens(job.request, length, length + 1));
    return true;
  }

  void preempt_last() {
    ++ledger_[KvCount::preemptions];
    ledger_[KvCount::recomputed] += pool_.length(running_.back().request.id);
    pool_.free(running_.back().request.id);
    waiting_.insert(waiting_.begin(), running_.back());
    running_.pop_back();
  }

  bool admit() {
    const Job& head = waiting_.front();
    const std::int64_t length = head.request.prompt + head.generated;
    const std::vector<TokenId> all = tokens(head.request, 0, length);
    const std::int64_t reused = pool_.submit(head.request.id, all, head.request.output - head.generated);
    const auto kept = static_cast<std::int64_t>(p_.watermark_ratio * pool_.num_blocks());
    if (pool_.blocks_to_append(head.request.id, length - reused) + (running_.empty() ? 0 : kept) >
        pool_.available_blocks()) {
      pool_.abort(head.request.id);
      return false;
    }
    pool_.append(head.request.id, std::span<const TokenId>(all).subspan(static_cast<std::size_t>(reused)));
    if (head.generated == 0) ledger_[KvCount::reused_prompt] += reused;
    running_.push_back(head);
    waiting_.erase(waiting_.begin());
    ledger_[KvCount::peak_running] = std::max(ledger_[KvCount::peak_running], std::ssize(running_));
    return true;
  }

  void count() {
    std::set<std::int32_t> taken;
    const std::int64_t before = ledger_[KvCount::token];
    for (const Job& job : running_) {
      const auto table = pool_.table(job.request.id);
      const std::int64_t length = pool_.length(job.request.id);
      const std::int64_t stored = job.request.prompt + job.request.output - 1;
      for (std::int64_t slot = 0; slot < std::ssize(table) * p_.block_size; ++slot) {
        const bool first_seen = !taken.contains(table[static_cast<std::size_t>(slot / p_.block_size)]);
        if (!first_seen) {
          ++ledger_[KvCount::shared_saved];
        } else {
          ++ledger_[slot < length ? KvCount::token : slot < stored ? KvCount::reserved : KvCount::internal];
        }
        if (slot % p_.block_size == p_.block_size - 1)
          taken.insert(table[static_cast<std::size_t>(slot / p_.block_size)]);
      }
    }
    if (!waiting_.empty()) {
      ++ledger_[KvCount::loaded_steps];
      ledger_[KvCount::loaded_token] += ledger_[KvCount::token] - before;
      ledger_[KvCount::loaded_generated] += std::ssize(running_);
    }
    const std::int64_t cached = pool_.usage().cached_blocks;
    ledger_[KvCount::cached] += cached * p_.block_size;
    ledger_[KvCount::free] += (pool_.num_blocks() - std::ssize(taken) - cached) * p_.block_size;
    ledger_[KvCount::external] += p_.pool_slots() % p_.block_size;
    ledger_[KvCount::generated] += std::ssize(running_);
    ++ledger_[KvCount::steps];
  }

  const KvMemoryProblem& p_;
  BlockPool pool_;
  std::vector<KvRequest> requests_;
  std::size_t next_ = 0;
  std::vector<Job> waiting_;  // first come, first served: preempted ones in front
  std::vector<Job> running_;
  KvLedger ledger_;
};

// Prompts of up to three hash blocks from a small tree, so that many begin alike.
std::string random_rows(std::mt19937& random) {
  const auto between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  std::string text;
  int ms = 0;
  for (int i = between(2, 40); i > 0; --i, ms += between(0, 1) * between(0, 300)) {
    const int prompt = between(1, 1500);
    std::string ids;
    for (int block = 0, node = 0; block * 512 < prompt; ++block) {
      node = node * 4 + between(1, 3);
      ids += (ids.empty() ? "" : ", ") + std::to_string(node);
    }
    text += "{\"timestamp\": " + std::to_string(ms) + ", \"input_length\": " + std::to_string(prompt) +
            ", \"output_length\": " + std::to_string(between(1, 120)) + ", \"hash_ids\": [" + ids + "]}\n";
  }
  return text;
}

}  // namespace

TEST_CASE("kv_memory paged_prefix: equals a scheduler that appends token by token", "[kv_memory][paged][prefix]") {
  std::int64_t preemptions = 0;
  std::int64_t reused = 0;
  std::int64_t saved = 0;
  std::int64_t cached = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed);
    const TemporaryTrace trace(random_rows(random), ".jsonl");
    const auto choose = [&](std::initializer_list<std::int64_t> values) {
      return values.begin()[random() % values.size()];
    };
    const Fields fields = test::problem_fields(trace.path(), choose({1500, 1700, 2500, 4000}),
                                               {{"block_size", choose({1, 7, 16, 64, 256})},
                                                {"arrivals", std::string("trace")},
                                                {"step_ms", 10.0},
                                                {"watermark_ratio", choose({0, 1}) == 0 ? 0.0 : 0.03}});
    CAPTURE(seed, to_string(fields));
    const KvMemoryProblem problem = test::parse_problem(fields);
    const KvLedger plain = PlainScheduler(problem).run();
    const KvLedger ledger = test::run_policy("cpu.paged_prefix", fields);
    for (std::size_t i = 0; i < kKvCounts; ++i) {
      CAPTURE(name_of(static_cast<KvCount>(i)));
      CHECK(ledger[static_cast<KvCount>(i)] == plain[static_cast<KvCount>(i)]);
    }
    preemptions += ledger[KvCount::preemptions];
    reused += ledger[KvCount::reused_prompt];
    saved += ledger[KvCount::shared_saved];
    cached += ledger[KvCount::cached];
  }
  // The problems were hard enough to mean something.
  CHECK(preemptions > 30);
  CHECK(reused > 10'000);
  CHECK(saved > 10'000);
  CHECK(cached > 10'000);
}
