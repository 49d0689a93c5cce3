// Schedules of a serving engine as values: made at random, printed, and made smaller while they still fail.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "kernels/serving/config.hpp"
#include "kernels/serving/request.hpp"
#include "tests/kernels/kv_cache/pool_support.hpp"

namespace inferometer::test {

struct PlannedRequest {
  int arrival = 0;  // step
  int prompt = 1;   // tokens
  int family = 0;   // prompts of a family begin alike
  int max_new = 1;
  int abort = -1;  // step; -1: never
  bool abort_within = false;
  bool operator==(const PlannedRequest&) const = default;
};

struct Schedule {
  ServingConfig config;
  std::vector<PlannedRequest> requests;  // their ids are their places; submitted in order of arrival, then of place
  bool operator==(const Schedule&) const = default;
};

// Tokens of a family's prompts, the same for all but for the last: a beginning that they share, and an end of their
// own.
inline std::vector<TokenId> prompt_of(const PlannedRequest& request, SequenceId id) {
  std::vector<TokenId> prompt = consecutive(100 * request.family, request.prompt);
  if (request.family > 0) prompt.back() = static_cast<TokenId>(1000 + id);  // family 0: equal to the end
  return prompt;
}

inline Schedule random_schedule(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<std::uint64_t>(n)); };
  Schedule schedule;
  ServingConfig& config = schedule.config;
  config.policy = serving_policies()[static_cast<std::size_t>(below(4))];
  config.slots = 1 + below(6);
  config.block_size = 1 + below(5);
  // Mostly a pool that any request fits in alone, and hardly two; sometimes one that is too small for some.
  const int pool_tokens = below(8) == 0 ? 1 + below(20) : 30 + below(40);
  config.num_blocks = (pool_tokens + config.block_size - 1) / config.block_size;
  config.prefix_reuse = below(2) == 0;
  config.prompts_alone = config.policy == ServingPolicy::continuous && below(3) == 0;
  if (config.policy == ServingPolicy::chunked) config.token_budget = config.slots + below(7);
  if (below(5) == 0) config = with_contiguous_slots(config, 10 + below(24));
  const int requests = 1 + below(12);
  for (int i = 0; i < requests; ++i) {
    PlannedRequest request{
        .arrival = below(2) == 0 ? 0 : below(13), .prompt = 1 + below(14), .family = below(3), .max_new = below(16)};
    if (below(4) == 0) {
      request.abort = request.arrival + below(10);
      request.abort_within = below(2) == 0;
    }
    schedule.requests.push_back(request);
  }
  return schedule;
}

inline std::string to_string(const Schedule& schedule) {
  std::ostringstream text;
  const ServingConfig& config = schedule.config;
  text << name_of(config.policy) << ", slots " << config.slots << ", " << config.num_blocks << " blocks of "
       << config.block_size << (config.max_length > 0 ? ", max_length " + std::to_string(config.max_length) : "")
       << (config.prefix_reuse ? ", prefix reuse" : "") << (config.prompts_alone ? ", prompts alone" : "");
  if (config.token_budget > 0) text << ", token budget " << config.token_budget;
  for (std::size_t id = 0; id < schedule.requests.size(); ++id) {
    const PlannedRequest& request = schedule.requests[id];
    text << "\n  request " << id << ": arrival " << request.arrival << ", prompt " << request.prompt << ", family "
         << request.family << ", max_new " << request.max_new;
    if (request.abort >= 0)
      text << ", aborted " << (request.abort_within ? "within" : "before") << " step " << request.abort;
  }
  return text.str();
}

// Smaller schedules in one place: without a request or an abort, with half of a number or one less.
inline std::vector<Schedule> smaller(const Schedule& schedule) {
  std::vector<Schedule> candidates;
  for (std::size_t i = 0; i < schedule.requests.size() && schedule.requests.size() > 1; ++i) {
    candidates.push_back(schedule);
    candidates.back().requests.erase(candidates.back().requests.begin() + static_cast<std::ptrdiff_t>(i));
  }
  const auto reduce = [&](auto member_of, auto least) {
    Schedule half = schedule;
    Schedule less = schedule;
    auto& value = member_of(half);
    if (value <= least) return;
    value = std::max(least, static_cast<decltype(least)>(value / 2));
    --member_of(less);
    candidates.push_back(half);
    candidates.push_back(less);
  };
  for (std::size_t i = 0; i < schedule.requests.size(); ++i) {
    reduce([i](Schedule& s) -> int& { return s.requests[i].arrival; }, 0);
    reduce([i](Schedule& s) -> int& { return s.requests[i].prompt; }, 1);
    reduce([i](Schedule& s) -> int& { return s.requests[i].family; }, 0);
    reduce([i](Schedule& s) -> int& { return s.requests[i].max_new; }, 0);
    reduce([i](Schedule& s) -> int& { return s.requests[i].abort; }, 0);
    if (schedule.requests[i].abort >= 0) {
      candidates.push_back(schedule);
      candidates.back().requests[i].abort = -1;
    }
  }
  const bool chunked = schedule.config.policy == ServingPolicy::chunked;
  reduce([](Schedule& s) -> std::int64_t& { return s.config.slots; }, std::int64_t{1});
  reduce([](Schedule& s) -> std::int32_t& { return s.config.num_blocks; }, std::int32_t{1});
  reduce([](Schedule& s) -> std::int32_t& { return s.config.block_size; }, std::int32_t{1});
  if (chunked) reduce([](Schedule& s) -> std::int64_t& { return s.config.token_budget; }, schedule.config.slots);
  reduce([](Schedule& s) -> std::int64_t& { return s.config.max_length; }, std::int64_t{0});
  for (bool ServingConfig::*option : {&ServingConfig::prefix_reuse, &ServingConfig::prompts_alone})
    if (schedule.config.*option) {
      candidates.push_back(schedule);
      candidates.back().config.*option = false;
    }
  return candidates;
}

// A failing schedule of which no smaller one fails; `failure_of` says how a schedule fails, or nothing.
inline Schedule shrink(Schedule schedule, const std::function<std::string(const Schedule&)>& failure_of) {
  for (bool again = true; again;) {
    again = false;
    for (const Schedule& candidate : smaller(schedule))
      if (!failure_of(candidate).empty()) {
        schedule = candidate;
        again = true;
        break;
      }
  }
  return schedule;
}

}  // namespace inferometer::test
