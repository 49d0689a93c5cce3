// The iterations of a serving system, as far as memory is concerned. In each step
//   1. requests that computed their last output in the step before leave;
//   2. each running request, in the order of arrival, stores the token that the step before produced; when there is no
//      slot for it, the running request that arrived last is preempted: it gives up its slots and will compute its
//      tokens again;
//   3. unless one was preempted, waiting requests are admitted in order, the next one only after the one before it
//      (nobody overtakes); a request stores its prompt, and what it had generated before it was preempted, at once;
//   4. every running request computes one output.
// So a request of n outputs runs n steps and stores prompt + n - 1 tokens. It is the order of vLLM's scheduler (V1),
// without chunked prefill. Nothing is stepped through token by token: a request is looked at when it needs room, or
// ends, and sums over all running requests are carried from step to step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "reference/kv_memory/event_wheel.hpp"
#include "reference/kv_memory/ledger.hpp"
#include "reference/kv_memory/problem.hpp"
#include "reference/kv_memory/waiting_queue.hpp"

namespace inferometer {

class Simulation {
 public:
  Simulation(const KvMemoryProblem& problem, KvPlacement& policy);

  KvLedger run();  // once

 private:
  struct Running {
    WaitingRequest was = {};  // when it was admitted
    std::int64_t admitted = 0;
    std::int64_t end = 0;  // the first step in which it no longer runs
    KvRoom room = {};
    std::int64_t fillable = 0;  // slots of its room that it will have filled when it ends

    // That it holds in a step.
    std::int64_t tokens(std::int64_t step) const { return was.tokens() + step - admitted; }
  };
  // Over all running requests.
  struct Sums {
    std::int64_t tokens = 0;
    std::int64_t capacity = 0;
    std::int64_t fillable = 0;
  };

  void look_at_due();
  bool make_room(const Event& event);
  void preempt_last();
  void admit_waiting();
  bool admit_head();
  void set_room(Running& running, const KvRoom& room);
  void schedule(std::size_t place);
  WaitingRequest leave(std::size_t place, std::int64_t computed_tokens);
  void count(std::int64_t steps);

  KvPlacement& policy_;
  KvLedger ledger_;
  WaitingQueue waiting_;
  EventWheel wheel_;
  std::vector<Running> places_;  // of running requests, and empty ones
  std::vector<std::size_t> empty_places_;
  std::set<std::pair<std::int64_t, std::size_t>> running_;  // id, place
  Sums sums_;
  std::int64_t step_ = 0;
  bool preempted_ = false;          // in this step
  std::int64_t tried_id_ = -1;      // the head that found no room ...
  std::int64_t tried_version_ = 0;  // ... and the policy's version then
};

}  // namespace inferometer
