#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <vector>

#include "reference/serving/run_audit.hpp"

namespace inferometer {
namespace {

// Of requests that are served and have outputs, in the order of the trace.
std::vector<KvRequest> running_requests(const ServingProblem& p) {
  std::vector<KvRequest> requests;
  for (KvRequest& request : served_requests(p))
    if (request.output > 0 && p.fits(request.prompt, request.output)) requests.push_back(std::move(request));
  return requests;
}

// Batches of as many as run at once, each as long as its longest answer; its prompts are as long as the longest.
SlotRecount recount_static(const std::vector<KvRequest>& requests, std::size_t at_once) {
  SlotRecount count;
  for (std::size_t begin = 0; begin < requests.size(); begin += at_once) {
    const std::size_t end = std::min(begin + at_once, requests.size());
    std::int64_t longest_output = 0;
    std::int64_t longest_prompt = 0;
    for (std::size_t i = begin; i < end; ++i) {
      longest_output = std::max(longest_output, requests[i].output);
      longest_prompt = std::max(longest_prompt, requests[i].prompt);
    }
    count.steps += longest_output;
    for (std::size_t i = begin; i < end; ++i) {
      count.ended += longest_output - requests[i].output;
      count.padding_tokens += longest_output - requests[i].output + longest_prompt - requests[i].prompt;
    }
    count.peak_running = std::max(count.peak_running, static_cast<std::int64_t>(end - begin));
  }
  return count;
}

// Each request takes the slot that is free first, and keeps it a step for each output.
SlotRecount recount_joining(const std::vector<KvRequest>& requests, std::size_t at_once) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free_at;
  SlotRecount count{.peak_running = static_cast<std::int64_t>(std::min(at_once, requests.size()))};
  for (const KvRequest& request : requests) {
    std::int64_t begin = 0;
    if (free_at.size() == at_once) {
      begin = free_at.top();
      free_at.pop();
    }
    free_at.push(begin + request.output);
    count.steps = std::max(count.steps, begin + request.output);
  }
  return count;
}

}  // namespace

std::optional<SlotRecount> recount_slots(const ServingProblem& p, std::string_view policy) {
  if (p.block_size != 0 || p.arrivals != "all_at_start" || policy == "chunked") return std::nullopt;
  const auto at_once = static_cast<std::size_t>(std::min(p.slots, p.pool_blocks()));
  const std::vector<KvRequest> requests = running_requests(p);
  return policy == "static" ? recount_static(requests, at_once) : recount_joining(requests, at_once);
}

}  // namespace inferometer
