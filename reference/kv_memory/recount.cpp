#include "reference/kv_memory/recount.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "reference/kv_memory/slot_map.hpp"

namespace inferometer {
namespace {

constexpr std::int64_t kMostOutputs = 2'000'000;      // tokens
constexpr std::int64_t kMostSlotLooks = 500'000'000;  // requests times slots
constexpr std::int64_t kMostSteps = 50'000'000;
constexpr std::size_t kWindow[] = {1, 1024};  // of arrived requests in view: fcfs, shortest_first

enum class Rule : std::uint8_t { reserve_max, reserve_pow2, reserve_oracle, paged };

std::optional<Rule> rule_of(std::string_view policy) {
  if (policy.starts_with("cpu.")) policy.remove_prefix(4);
  if (policy == "reserve_max") return Rule::reserve_max;
  if (policy == "reserve_pow2") return Rule::reserve_pow2;
  if (policy == "reserve_oracle") return Rule::reserve_oracle;
  if (policy == "paged") return Rule::paged;
  return std::nullopt;
}

// One request, waiting or running.
struct Job {
  KvRequest request;
  std::int64_t generated = 0;
  std::int64_t tokens = 0;  // that it holds
  std::int64_t slots = 0;   // that were taken for it
  std::int64_t first = 0;   // of them, when they lie together
};

class Recount {
 public:
  Recount(const KvMemoryProblem& problem, Rule rule)
      : p_(problem), rule_(rule), source_(open_requests(problem)), map_(p_.pool_slots()) {
    free_blocks_ = blocks_ = p_.pool_slots() / p_.block_size;
    ledger_[KvCount::pool_slots] = p_.pool_slots();
    read();
  }

  // Nothing when there are too many steps.
  std::optional<KvLedger> run() {
    for (std::int64_t step = 0; step < kMostSteps;) {
      bool preempted = false;
      for (std::size_t i = 0; i < running_.size();) {
        if (running_[i].generated == running_[i].request.output) {
          leave(i);
        } else {
          ++i;
        }
      }
      for (std::size_t i = 0; i < running_.size(); ++i) {
        while (i < running_.size() && !store_one(running_[i])) {
          preempted = true;
          preempt_last();
        }
      }
      arrive(step);
      while (!preempted && !waiting_.empty() && admit_head()) arrive(step);
      if (running_.empty() && waiting_.empty() && !next_) return ledger_;
      for (Job& job : running_) ++job.generated;
      do {
        count();
        ++step;
      } while (running_.empty() && !has_arrived(step) && step < kMostSteps);
    }
    return std::nullopt;
  }

 private:
  void read() {
    KvRequest request;
    next_.reset();
    if (source_->next(request)) next_ = std::move(request);
  }

  bool has_arrived(std::int64_t step) const {
    return p_.arrivals == "all_at_start" || next_->arrival_ms <= static_cast<double>(step) * p_.step_ms;
  }

  void arrive(std::int64_t step) {
    const std::size_t window = kWindow[p_.order == "shortest_first" ? 1 : 0];
    while (next_ && has_arrived(step)) {
      const auto fresh = std::count_if(waiting_.begin(), waiting_.end(), [](const Job& j) { return j.generated == 0; });
      if (static_cast<std::size_t>(fresh) >= window) return;
      ++ledger_[KvCount::requests];
      ledger_[KvCount::prompt_tokens] += next_->prompt;
      ledger_[KvCount::output_tokens] += next_->output;
      if (next_->output > 0) {
        if (fits_alone(*next_)) {
          waiting_.push_back({.request = *next_});
        } else {
          ++ledger_[KvCount::refused];
          ledger_[KvCount::refused_output] += next_->output;
        }
      }
      read();
    }
  }

  bool fits_alone(const KvRequest& request) const {
    if (request.prompt == 0 || request.prompt + request.output - 1 > p_.max_length) return false;
    if (rule_ == Rule::paged) return blocks_for(request.prompt + request.output - 1) <= blocks_;
    return range_for(request) <= p_.pool_slots();
  }

  std::int64_t blocks_for(std::int64_t tokens) const { return (tokens + p_.block_size - 1) / p_.block_size; }

  // Slots of a contiguous range.
  std::int64_t range_for(const KvRequest& request) const {
    std::int64_t slots = p_.max_length;
    if (rule_ == Rule::reserve_oracle) slots = request.prompt + request.output - 1;
    if (rule_ == Rule::reserve_pow2) {
      std::int64_t outputs = 1;
      while (outputs < request.output) outputs *= 2;
      slots = std::min(slots, request.prompt + outputs - 1);
    }
    if (p_.contiguous != "buddy") return slots;
    std::int64_t size = 1;
    while (size < slots) size *= 2;
    return size;
  }

  bool admit_head() {
    const auto before = [&](const Job& a, const Job& b) {
      if (p_.order == "shortest_first" && a.request.prompt != b.request.prompt)
        return a.request.prompt < b.request.prompt;
      return a.request.id < b.request.id;
    };
    const auto head = std::min_element(waiting_.begin(), waiting_.end(), before);
    if (head->request.id == tried_) return false;  // nothing has left since it found no room
    Job job = *head;
    job.tokens = job.request.prompt + job.generated;
    if (!place(job)) {
      tried_ = job.request.id;
      return false;
    }
    waiting_.erase(head);
    running_.insert(std::find_if(running_.begin(), running_.end(),
                                 [&](const Job& other) { return other.request.id > job.request.id; }),
                    job);
    ledger_[KvCount::peak_running] = std::max(ledger_[KvCount::peak_running], std::ssize(running_));
    return true;
  }

  bool place(Job& job) {
    if (rule_ == Rule::paged) {
      const std::int64_t needed = blocks_for(job.tokens);
      const auto kept = static_cast<std::int64_t>(p_.watermark_ratio * static_cast<double>(blocks_));
      if (needed + (running_.empty() ? 0 : kept) > free_blocks_) return false;
      free_blocks_ -= needed;
      job.slots = needed * p_.block_size;
      return true;
    }
    job.slots = range_for(job.request);
    const auto first = p_.contiguous == "buddy" ? map_.find_buddy(job.slots) : map_.first_fit(job.slots);
    if (!first) return false;
    job.first = *first;
    map_.mark(job.first, job.slots, true);
    return true;
  }

  bool store_one(Job& job) {
    if (job.tokens == job.slots) {
      if (free_blocks_ == 0) return false;
      --free_blocks_;
      job.slots += p_.block_size;
    }
    ++job.tokens;
    return true;
  }

  void preempt_last() {
    Job job = running_.back();
    ++ledger_[KvCount::preemptions];
    ledger_[KvCount::recomputed] += job.tokens;
    leave(running_.size() - 1);
    waiting_.push_back(std::move(job));
  }

  void leave(std::size_t i) {
    if (rule_ == Rule::paged) {
      free_blocks_ += running_[i].slots / p_.block_size;
    } else {
      map_.mark(running_[i].first, running_[i].slots, false);
    }
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
    tried_ = -1;
  }

  void count() {
    std::int64_t left = p_.pool_slots();
    for (const Job& job : running_) {
      const std::int64_t fillable = std::min(job.slots, job.request.prompt + job.request.output - 1);
      ledger_[KvCount::token] += job.tokens;
      if (!waiting_.empty()) ledger_[KvCount::loaded_token] += job.tokens;
      ledger_[KvCount::reserved] += fillable - job.tokens;
      ledger_[KvCount::internal] += job.slots - fillable;
      left -= job.slots;
    }
    ledger_[KvCount::generated] += std::ssize(running_);
    ++ledger_[KvCount::steps];
    if (!waiting_.empty()) {
      ++ledger_[KvCount::loaded_steps];
      ledger_[KvCount::loaded_generated] += std::ssize(running_);
    }
    std::int64_t unusable = 0;
    if (rule_ == Rule::paged) unusable = p_.pool_slots() - blocks_ * p_.block_size;
    if (rule_ != Rule::paged && !waiting_.empty()) unusable = left;
    ledger_[KvCount::external] += unusable;
    ledger_[KvCount::free] += left - unusable;
  }

  const KvMemoryProblem& p_;
  Rule rule_;
  std::unique_ptr<RequestSource> source_;
  std::optional<KvRequest> next_;
  std::vector<Job> waiting_;
  std::vector<Job> running_;  // by id
  SlotMap map_;               // contiguous policies
  std::int64_t blocks_ = 0;
  std::int64_t free_blocks_ = 0;
  std::int64_t tried_ = -1;  // id of the request that found no room
  KvLedger ledger_;
};

}  // namespace

KvLedger count_trace(const KvMemoryProblem& problem) {
  KvLedger ledger;
  const std::unique_ptr<RequestSource> source = open_requests(problem);
  for (KvRequest request; source->next(request);) {
    ++ledger[KvCount::requests];
    ledger[KvCount::prompt_tokens] += request.prompt;
    ledger[KvCount::output_tokens] += request.output;
  }
  return ledger;
}

std::optional<KvLedger> recount(const KvMemoryProblem& problem, std::string_view policy) {
  const std::optional<Rule> rule = rule_of(policy);
  if (!rule) return std::nullopt;
  const KvLedger trace = count_trace(problem);
  if (trace[KvCount::output_tokens] > kMostOutputs || trace[KvCount::requests] > kMostSlotLooks / problem.pool_slots())
    return std::nullopt;
  return Recount(problem, *rule).run();
}

}  // namespace inferometer
