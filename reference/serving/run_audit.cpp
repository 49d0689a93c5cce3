#include "reference/serving/run_audit.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "harness/operator/generate.hpp"
#include "reference/serving/run_metrics.hpp"

namespace inferometer {
namespace {

// The first sentence that is given.
class Audit {
 public:
  void equal(const std::string& what, std::int64_t value, const std::string& other, std::int64_t expected) {
    if (sentence_.empty() && value != expected)
      sentence_ = what + " is " + std::to_string(value) + ", " + other + " " + std::to_string(expected);
  }
  void at_most(const std::string& what, std::int64_t value, const std::string& other, std::int64_t most) {
    if (sentence_.empty() && value > most)
      sentence_ = what + " is " + std::to_string(value) + ", more than " + other + ", " + std::to_string(most);
  }
  void holds(bool condition, const std::string& otherwise) {
    if (sentence_.empty() && !condition) sentence_ = otherwise;
  }
  const std::string& sentence() const { return sentence_; }

 private:
  std::string sentence_;
};

// "static" of "cpu.static" and of "cpu.simulated_static".
std::string_view policy_of(std::string_view variant) {
  for (const std::string_view policy : {"static", "iteration", "continuous", "chunked"})
    if (variant.ends_with(policy)) return policy;
  throw std::invalid_argument("no serving policy in the name of the variant " + std::string(variant));
}

ServingClock clock_of(std::string_view variant) {
  if (variant.find(".simulated_") != std::string_view::npos) return ServingClock::simulated;
  return variant.starts_with("cpu.") ? ServingClock::host : ServingClock::device;
}

// Sums over all requests that were served.
struct Totals {
  std::int64_t outputs = 0;
  std::int64_t stored = 0;  // tokens: each is computed once where nothing is preempted or reused
  std::int64_t keys = 0;    // read where prompts run as a whole and nothing is preempted
  std::int64_t pairs = 0;   // the same, in chunks too
  std::int64_t reused = 0;
  std::int64_t recomputed = 0;
  std::int64_t preemptions = 0;
};

Totals totals_of(const ServingRun& run) {
  Totals sum;
  for (const auto& request : run.requests) {
    if (!request || request->max_new == 0) continue;
    const std::int64_t outputs = request->max_new;
    const std::int64_t stored = request->prompt_tokens + outputs - 1;
    sum.outputs += outputs;
    sum.stored += stored;
    sum.keys += outputs * request->prompt_tokens + outputs * (outputs - 1) / 2;
    sum.pairs += stored * (stored + 1) / 2;
    sum.reused += request->reused_tokens;
    sum.recomputed += request->recomputed_tokens;
    sum.preemptions += request->preemptions;
  }
  return sum;
}

void check_requests(Audit& audit, const ServingRun& run) {
  for (const auto& request : run.requests) {
    if (!request) continue;
    std::int64_t last = request->arrival_ns;
    for (const std::int64_t now : request->token_ns) {
      audit.holds(now >= last, "request " + std::to_string(request->id) +
                                   " has an output before its arrival, or before the output in front of it");
      last = now;
    }
    audit.at_most("the last output of request " + std::to_string(request->id), last,
                  "the end of the run or its arrival", std::max(run.times.end_ns, request->arrival_ns));
  }
}

// What the cost model says: a hash of the request and the token's position.
void check_simulated_tokens(Audit& audit, const ServingRun& run) {
  for (const auto& request : run.requests) {
    if (!request) continue;
    for (std::size_t i = 0; i < request->outputs.size(); ++i) {
      const auto position = static_cast<std::uint64_t>(request->prompt_tokens) + i;
      const std::uint64_t hash = stream_key(static_cast<std::uint64_t>(request->id), position) >> 33;
      audit.equal("output " + std::to_string(i) + " of request " + std::to_string(request->id), request->outputs[i],
                  "simulated alone", static_cast<std::int64_t>(hash));
    }
  }
}

void check_ledger(Audit& audit, const ServingProblem& p, std::string_view policy, const ServingRun& run) {
  const ServingLedger& ledger = run.ledger;
  const Totals totals = totals_of(run);
  const bool reserves = policy == "static" || policy == "iteration";
  audit.equal("slots", ledger.slots, "the problem's", p.slots);
  audit.equal("the sum of all slot states", ledger.slot_steps(), "slots x steps", ledger.slots * ledger.steps);
  audit.equal("producing", ledger.producing, "the outputs of all requests", totals.outputs);
  audit.equal("rows that sample", run.work.sampled, "the outputs of all requests", totals.outputs);
  audit.equal("discarded", ledger.discarded, "the slot-steps of aborted requests", 0);
  audit.equal("stalled", ledger.stalled, "the steps of prompts alone", 0);
  if (policy != "chunked") audit.equal("prefilling", ledger.prefilling, "the prompts in parts", 0);
  if (policy != "static") audit.equal("ended", ledger.ended, "the requests that wait for their batch", 0);
  if (policy != "static") audit.equal("padding tokens", ledger.padding_tokens, "those of batches that pad nothing", 0);
  if (reserves) audit.equal("preemptions", ledger.preemptions, "those of a policy that reserves", 0);
  audit.equal("preemptions", ledger.preemptions, "those of all requests", totals.preemptions);
  audit.equal("recomputed tokens", ledger.recomputed_tokens, "those of all requests", totals.recomputed);
  if (!p.prefix_reuse) {
    audit.equal("reused tokens", ledger.reused_tokens, "those without prefix_reuse", 0);
    audit.equal("reused tokens of requests", totals.reused, "those without prefix_reuse", 0);
    audit.equal("computed tokens", ledger.computed_tokens, "those of all requests and of preemptions",
                totals.stored + totals.recomputed);
  }
  audit.at_most("the most requests at once", ledger.peak_running, "slots", p.slots);
  audit.at_most("the least number of steps", least_steps(p, run), "the steps taken", ledger.steps);
  if (const auto recount = recount_slots(p, policy)) {
    audit.equal("steps", ledger.steps, "recounted", recount->steps);
    audit.equal("the most requests at once", ledger.peak_running, "recounted", recount->peak_running);
    audit.equal("ended", ledger.ended, "recounted", recount->ended);
    audit.equal("padding tokens", ledger.padding_tokens, "recounted", recount->padding_tokens);
  }
}

void check_cache(Audit& audit, const ServingProblem& p, std::string_view policy, const ServingRun& run) {
  const ServingLedger& ledger = run.ledger;
  const Totals totals = totals_of(run);
  audit.equal("cached tokens over all steps", ledger.kv_token_steps, "read by their rows", run.work.keys);
  audit.at_most("the most that was taken of the pool", ledger.kv_taken_peak, "the pool", p.pool_tokens());
  audit.at_most("what was taken over all steps", ledger.kv_taken_steps, "its peak in each",
                ledger.kv_taken_peak * ledger.steps);
  if (p.prefix_reuse || ledger.preemptions > 0) return;
  audit.at_most("cached tokens over all steps", ledger.kv_token_steps, "what was taken", ledger.kv_taken_steps);
  audit.equal("queries with a key", run.work.pairs, "those of all requests", totals.pairs);
  if (policy != "chunked") audit.equal("cached tokens read", run.work.keys, "those of all requests", totals.keys);
}

void check_times(Audit& audit, const ServingProblem& p, const ServingRun& run) {
  const ServingTimes& times = run.times;
  const std::int64_t steps_ns = times.end_ns - times.idle_ns;
  audit.at_most("busy and host time", times.busy_ns + times.host_ns, "that of all steps", steps_ns);
  // Sums of whole steps: each was rounded to a ns.
  const StepCost least = step_cost(p, ceiling_rates(p));
  const auto bound = [](double per, std::int64_t count) { return std::llround(per * static_cast<double>(count)); };
  const std::int64_t rounding = 1 + run.ledger.steps;
  audit.at_most("reading all weights in each step", bound(least.weights_ns, run.ledger.steps), "the roofline's time",
                times.roofline_ns + rounding);
  audit.at_most("reading all keys and values", bound(least.key_ns, run.work.keys), "the roofline's time",
                times.roofline_ns + rounding);
  audit.at_most("the roofline's time", times.roofline_ns, "the cost model's", times.predicted_ns + rounding);
  if (run.clock != ServingClock::simulated) return;
  audit.at_most("the distance of the simulated time from the cost model's", std::abs(steps_ns - times.predicted_ns),
                "rounding", rounding);
  audit.equal("the second clock of a simulation", times.second_ns, "its first", steps_ns);
}

}  // namespace

std::string audit_run(const ServingProblem& p, std::string_view variant, const ServingRun& run) {
  const std::string_view policy = policy_of(variant);
  Audit audit;
  audit.equal("the clock", static_cast<std::int64_t>(run.clock), "that of the variant's backend",
              static_cast<std::int64_t>(clock_of(variant)));
  check_ledger(audit, p, policy, run);
  check_cache(audit, p, policy, run);
  check_requests(audit, run);
  check_times(audit, p, run);
  if (run.clock == ServingClock::simulated) check_simulated_tokens(audit, run);
  const bool has_decoder = run.clock != ServingClock::simulated;
  return audit.sentence().empty() && has_decoder && p.is_small() ? audit_tokens(p, run) : audit.sentence();
}

}  // namespace inferometer
