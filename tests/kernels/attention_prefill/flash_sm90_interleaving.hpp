// The agents of flash_sm90_steps.hpp, run one step at a time in random order. Copies land in any order, at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/kernels/attention_prefill/flash_sm90_steps.hpp"

namespace inferometer::test {

// As PTX's mbarrier, copies in place of bytes.
struct Barrier {
  int arrivals = 1;  // of a phase
  int missing = 1;   // in this one
  int copies = 0;    // announced and not landed
  unsigned phase = 0;

  bool ended(unsigned parity) const { return phase % 2 != parity; }
  void settle() {
    if (missing > 0 || copies > 0) return;
    missing = arrivals;
    ++phase;
  }
};

struct Stage {
  static constexpr unsigned kUnknown = ~0U;

  Barrier ready;
  Barrier read;
  unsigned contents = kUnknown;
  int readers = 0;
};

template <class Shape>
class Interleaving {
 public:
  explicit Interleaving(const std::vector<Steps>& of_agents) : agents(of_agents), next(of_agents.size(), 0) {
    for (int i = 0; i < Stages<Shape>::kCount; ++i) {
      Barrier& read = stages[static_cast<std::size_t>(i)].read;
      read.arrivals = read.missing = Stages<Shape>::readers(i);
    }
  }

  // All agents to their ends. Each step is the first possible one in an order of preference of agents and landings,
  // which changes now and then: so an agent can fall far behind the others. Returns what went wrong, or "".
  std::string run(std::mt19937& random) {
    std::vector<std::size_t> order(agents.size() + 1);  // the last: a copy lands
    std::iota(order.begin(), order.end(), std::size_t{0});
    while (fault.empty() && !all_ended()) {
      if (random() % 16 == 0) std::swap(order[random() % order.size()], order[random() % order.size()]);
      bool moved = false;
      for (std::size_t i = 0; i < order.size() && !moved; ++i)
        moved = order[i] == agents.size() ? land(random) : advance(order[i]);
      if (!moved) fault = "deadlock";
    }
    // With its threads a block's shared memory is gone.
    if (fault.empty() && !copies.empty()) fault = "the block ends with copies under way";
    return fault;
  }

 private:
  bool all_ended() const {
    for (std::size_t agent = 0; agent < agents.size(); ++agent)
      if (next[agent] < agents[agent].size()) return false;
    return true;
  }

  // False when the agent has ended or must wait.
  bool advance(std::size_t agent) {
    if (next[agent] == agents[agent].size() || !possible(agents[agent][next[agent]])) return false;
    take(agents[agent][next[agent]++]);
    return true;
  }

  bool possible(const Step& step) const {
    const auto at = static_cast<std::size_t>(step.at);
    switch (step.act) {
      case Act::wait_turn: return turns[at] > 0;
      case Act::wait_ready: return stages[at].ready.ended(step.argument);
      case Act::wait_read: return stages[at].read.ended(step.argument);
      default: return true;
    }
  }

  void take(const Step& step) {
    const auto at = static_cast<std::size_t>(step.at);
    switch (step.act) {
      case Act::wait_ready:
      case Act::wait_read: break;
      case Act::arrive_ready: arrive(stages[at].ready); break;
      case Act::arrive_read: arrive(stages[at].read); break;
      case Act::write: overwrite(stages[at], step.argument); break;
      case Act::copy:
        overwrite(stages[at], Stage::kUnknown);
        ++stages[at].ready.copies;
        copies.emplace_back(at, step.argument);
        arrive(stages[at].ready);
        break;
      case Act::begin_read:
      case Act::end_read:
        if (stages[at].contents != step.argument) fault = "a stage does not hold what its reader expects";
        stages[at].readers += step.act == Act::begin_read ? 1 : -1;
        break;
      case Act::wait_turn: --turns[at]; break;
      case Act::pass_turn:
        if (++turns[at] > 1) fault = "a turn is passed twice";
        break;
    }
  }

  void arrive(Barrier& barrier) {
    if (barrier.missing == 0) fault = "a barrier has more arrivals than its phase takes";
    --barrier.missing;
    barrier.settle();
  }
  void overwrite(Stage& stage, unsigned contents) {
    if (stage.readers > 0) fault = "a stage is overwritten while it is read";
    stage.contents = contents;
  }

  // False when no copy is under way.
  bool land(std::mt19937& random) {
    if (copies.empty()) return false;
    const std::size_t i = random() % copies.size();
    Stage& stage = stages[copies[i].first];
    stage.contents = copies[i].second;
    copies.erase(copies.begin() + static_cast<std::ptrdiff_t>(i));
    --stage.ready.copies;
    stage.ready.settle();
    return true;
  }

  const std::vector<Steps>& agents;
  std::vector<std::size_t> next;
  std::array<Stage, Stages<Shape>::kCount> stages{};
  std::array<int, Shape::kWarpgroups> turns{};
  std::vector<std::pair<std::size_t, unsigned>> copies;  // under way: stage, contents
  std::string fault;
};

}  // namespace inferometer::test
