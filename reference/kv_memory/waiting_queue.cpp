#include "reference/kv_memory/waiting_queue.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace inferometer {
namespace {

constexpr std::size_t kShortestWindow = 1024;

}  // namespace

// First come, first served, or fewest prompt tokens: what a server knows of a request beforehand. A preempted request
// keeps the place of its arrival.
bool WaitingQueue::Order::operator()(const WaitingRequest& a, const WaitingRequest& b) const {
  if (shortest_first && a.request.prompt != b.request.prompt) return a.request.prompt < b.request.prompt;
  return a.request.id < b.request.id;
}

WaitingQueue::WaitingQueue(const KvMemoryProblem& problem, const KvPlacement& policy, KvLedger& ledger)
    : problem_(problem),
      policy_(policy),
      ledger_(ledger),
      source_(open_requests(problem)),
      waiting_(Order{problem.order == "shortest_first"}),
      window_(problem.order == "shortest_first" ? kShortestWindow : 1) {
  advance();
}

void WaitingQueue::take_arrived(std::int64_t step) {
  for (; next_ && waiting_.size() - preempted_ < window_ && *next_arrival() <= step; advance()) {
    const KvRequest& request = *next_;
    ++ledger_[KvCount::requests];
    ledger_[KvCount::prompt_tokens] += request.prompt;
    ledger_[KvCount::output_tokens] += request.output;
    if (request.output > 0 &&
        (request.prompt < 1 || request.stored() > problem_.max_length || !policy_.can_hold(request))) {
      ++ledger_[KvCount::refused];
      ledger_[KvCount::refused_output] += request.output;
    } else if (request.output > 0) {
      waiting_.insert({.request = std::move(*next_)});
    }
  }
}

WaitingRequest WaitingQueue::take_head() {
  WaitingRequest head = std::move(waiting_.extract(waiting_.begin()).value());
  if (head.generated > 0) --preempted_;
  return head;
}

void WaitingQueue::put_back(WaitingRequest preempted) {
  ++preempted_;
  waiting_.insert(std::move(preempted));
}

std::optional<std::int64_t> WaitingQueue::next_arrival() const {
  if (!next_) return std::nullopt;
  if (problem_.arrivals != "trace") return 0;
  // The first step that does not begin before it does; the quotient may be off by a rounding.
  double step = std::ceil(next_->arrival_ms / problem_.step_ms);
  if ((step - 1) * problem_.step_ms >= next_->arrival_ms) --step;
  if (step * problem_.step_ms < next_->arrival_ms) ++step;
  return static_cast<std::int64_t>(step);
}

void WaitingQueue::advance() {
  KvRequest request;
  if (source_->next(request)) {
    next_ = std::move(request);
  } else {
    next_.reset();
  }
}

}  // namespace inferometer
