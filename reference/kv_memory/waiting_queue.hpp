// The requests that have arrived and do not run, in the order of admission. Of a trace of any length it holds only a
// window: the rest stays in its source.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>

#include "reference/kv_memory/ledger.hpp"
#include "reference/kv_memory/placement.hpp"
#include "reference/kv_memory/problem.hpp"

namespace inferometer {

struct WaitingRequest {
  KvRequest request;
  std::int64_t generated = 0;  // outputs computed before it was preempted

  std::int64_t tokens() const { return request.prompt + generated; }  // to store when it starts
};

class WaitingQueue {
 public:
  WaitingQueue(const KvMemoryProblem& problem, const KvPlacement& policy, KvLedger& ledger);

  // Takes in what has arrived by the beginning of `step`, as far as the window goes. Refused requests and those without
  // outputs go to the ledger at once.
  void take_arrived(std::int64_t step);

  bool empty() const { return waiting_.empty(); }
  const WaitingRequest& head() const { return *waiting_.begin(); }
  WaitingRequest take_head();
  void put_back(WaitingRequest preempted);

  // The step in which the next request arrives; nothing after the last. May be in the past when the window is full.
  std::optional<std::int64_t> next_arrival() const;

 private:
  struct Order {
    bool shortest_first = false;
    bool operator()(const WaitingRequest& a, const WaitingRequest& b) const;
  };

  void advance();

  const KvMemoryProblem& problem_;
  const KvPlacement& policy_;
  KvLedger& ledger_;
  std::unique_ptr<RequestSource> source_;
  std::optional<KvRequest> next_;
  std::set<WaitingRequest, Order> waiting_;
  std::size_t window_;
  std::size_t preempted_ = 0;  // of those waiting: beside the window
};

}  // namespace inferometer
